// Lowering, the part about groups and the store.

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/program/lowering.h"
#include "scenarios/program/rank_sets.h"

namespace rollcall::scenario {

TableIndex Lowering::read_label(const Statement& statement) {
  const auto label = statement.find("label");
  return label ? read_.intern(read_.string(*label, "a label")) : none;
}

std::optional<Duration> Lowering::read_timeout(const Statement& statement) {
  const auto timeout = statement.find("timeout");
  if (!timeout) {
    return std::nullopt;
  }
  const Duration duration = read_.duration(*timeout);
  if (duration <= 0) {
    read_.error(*timeout, "must be longer than 0");
  }
  return duration;
}

// Reads what calls about groups have in common.
GroupStatement Lowering::begin_group_call(const Statement& statement, GroupStatement::Kind kind) {
  GroupStatement call;
  call.kind = kind;
  call.label = read_label(statement);
  call.timeout = read_timeout(statement);
  read_.given(statement.find("as"), call.made, &ValueReader::made_group);
  return call;
}

void Lowering::end_group_call(const Statement& statement, GroupStatement call) {
  emit(statement.node(), action::CallGroup{add_entry(program_->group_statements, std::move(call))});
}

void Lowering::lower_new_group(const Statement& statement) {
  GroupStatement call = begin_group_call(statement, GroupStatement::Kind::new_group);
  if (const auto given = statement.subject()) {
    const auto ranks = read_ranks(*given, facts_.world_size, diagnostics_);
    if (ranks && ranks->empty()) {
      read_.error(*given, "a group needs at least one rank");
    }
    call.ranks = ranks ? ranks->to_vector() : RankList{0};
  }
  read_.given(statement.find("use_local_synchronization"), call.is_local, &ValueReader::flag);
  if (const auto backend = statement.find("backend")) {
    call.is_on_gloo = read_.string(*backend, "a backend") == "gloo";
    if (!call.is_on_gloo && backend->is(JsonType::string)) {
      read_.error(*backend, "a group has the job's backend, or \"gloo\"");
    }
  }
  end_group_call(statement, std::move(call));
}

void Lowering::lower_new_subgroups(const Statement& statement) {
  GroupStatement call = begin_group_call(statement, GroupStatement::Kind::new_subgroups);
  if (const auto size = statement.subject()) {
    call.size = read_.integer_in(*size, 1, facts_.world_size, "group_size");
  }
  end_group_call(statement, std::move(call));
}

// The ranks are numbered within the parent, whose size is known only when the statement runs.
void Lowering::lower_split_group(const Statement& statement) {
  GroupStatement call = begin_group_call(statement, GroupStatement::Kind::split_group);
  read_.given(statement.find("group"), call.group, &ValueReader::group);
  const auto lists = statement.subject();
  if (lists && !lists->is(JsonType::array)) {
    read_.error(*lists, "expected a list of lists of ranks, such as [[0, 1], [2, 3]]");
  } else if (lists) {
    call.lists.emplace();
    for (Json list : lists->children()) {
      const auto ranks = read_ranks(list, facts_.world_size, diagnostics_);
      call.lists->push_back(ranks ? ranks->to_vector() : RankList{});
    }
  }
  end_group_call(statement, std::move(call));
}

void Lowering::lower_destroy_group(const Statement& statement) {
  GroupStatement call = begin_group_call(statement, GroupStatement::Kind::destroy);
  const auto group = statement.subject();
  call.everything = !group;
  if (group) {
    call.group = read_.group(*group);
  }
  end_group_call(statement, std::move(call));
}

void Lowering::lower_monitored_barrier(const Statement& statement) {
  GroupStatement call = begin_group_call(statement, GroupStatement::Kind::monitored_barrier);
  if (!statement.head().is(JsonType::object)) {
    read_.error(statement.head(), "a barrier has no tensor: write {\"monitored_barrier\": {}}");
  }
  read_.given(statement.find("group"), call.group, &ValueReader::group);
  read_.given(statement.find("wait_all_ranks"), call.wait_all_ranks, &ValueReader::flag);
  end_group_call(statement, std::move(call));
}

void Lowering::lower_store(const Statement& statement) {
  StoreStatement call;
  call.kind = parse_store_kind(statement.rule().key).value();
  call.label = read_label(statement);
  call.timeout = read_timeout(statement);
  const auto key = statement.subject();
  if (!key) {
    read_.error(statement.node(), fmt::format("\"{}\" needs \"key\"", statement.rule().key));
  } else if (call.kind == StoreCall::Kind::wait && key->is(JsonType::array)) {
    for (Json one : key->children()) {
      call.keys.push_back(read_.text(one));
    }
  } else {
    call.keys.push_back(read_.text(*key));
  }
  if (call.kind == StoreCall::Kind::set || call.kind == StoreCall::Kind::compare_set) {
    const char* what = call.kind == StoreCall::Kind::set ? "value" : "desired_value";
    if (const auto value = require(statement, what)) {
      call.value = read_.text(*value);
    }
    read_.given(statement.find("expected_value"), call.expected, &ValueReader::text);
  } else if (call.kind == StoreCall::Kind::add) {
    const auto value = statement.find("value");
    call.amount = value ? read_.integer(*value) : Operand::of(1);
  }
  read_.given(statement.find("want"), call.want, &ValueReader::text);
  read_.given(statement.find("as"), call.variable, &ValueReader::variable);
  emit(statement.node(), action::CallStore{add_entry(program_->store_statements, std::move(call))});
}

}  // namespace rollcall::scenario
