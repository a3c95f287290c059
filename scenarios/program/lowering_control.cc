// Lowering, the part about blocks: loops, conditions, branches, join and try.

#include <algorithm>

#include <utility>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/program/lowering.h"

namespace rollcall::scenario {
void Lowering::lower_for(const Statement& statement) {
  Loop loop{Operand::of(0), Operand::of(0)};
  if (const auto range = require(statement, "in")) {
    if (range->is(JsonType::array) && range->size() == 2) {
      auto bound = range->children().begin();
      loop.first = read_.integer(*bound);
      ++bound;
      loop.last = read_.integer(*bound);
    } else {
      read_.error(*range, "expected [first, end]: the variable counts from first to end - 1");
    }
  }
  lower_loop(statement, loop, read_.string(statement.head(), "a variable's name"));
}

void Lowering::lower_repeat(const Statement& statement) {
  const Operand times = read_.integer_in(statement.head(), 0, INT64_MAX, "a number of repetitions");
  lower_loop(statement, {Operand::of(0), times}, {});
}

void Lowering::lower_for_each_input(const Statement& statement) {
  if (!facts_.has_inputs) {
    read_.error(statement.node(), "\"for_each_input\" needs \"inputs\" at the top of the scenario");
  }
  lower_loop(statement, {Operand::of(0), {}}, read_.string(statement.head(), "a variable's name"));
}

void Lowering::lower_loop(const Statement& statement, const Loop& loop, std::string_view variable) {
  const Json& node = statement.node();
  if (!variable.empty() && !is_name(variable)) {
    read_.error(statement.head(), not_a_name(variable));
  } else if (is_reserved_name(variable) || names_.find(variable)) {
    read_.error(statement.head(),
                fmt::format("\"{}\" already means something else; use another name", variable));
  }
  const std::size_t level = 2 * breaks_.size();
  while (loop_slots_->size() < level + 2) {
    loop_slots_->push_back(names_.add_variable("loop"));
  }
  const SlotIndex counter = (*loop_slots_)[level];
  const SlotIndex bound = (*loop_slots_)[level + 1];

  const Address begin = here();
  emit(node, action::LoopBegin{counter, bound, add_entry(program_->loops, loop), 0});
  breaks_.emplace_back();
  read_.scope().loops.emplace_back(variable, counter);
  if (const auto body = require(statement, "do")) {
    lower_statements(*body);
  }
  read_.scope().loops.pop_back();
  emit(node, action::LoopNext{counter, bound, statement.rule().key == "for_each_input", begin + 1});

  at<action::LoopBegin>(begin).end = here();
  for (Address jump : breaks_.back()) {
    at<action::Jump>(jump).target = here();
  }
  breaks_.pop_back();
}

void Lowering::lower_break(const Statement& statement) {
  require_true(statement);
  if (breaks_.empty()) {
    read_.error(statement.node(), "\"break\" is outside any loop");
    return;
  }
  breaks_.back().push_back(here());
  emit(statement.node(), action::Jump{});
}

void Lowering::lower_if(const Statement& statement) {
  const Operand condition = read_.integer(statement.head());
  const Address test = here();
  emit(statement.node(), action::JumpUnless{condition, 0});
  if (const auto then = require(statement, "do")) {
    lower_statements(*then);
  }
  const auto otherwise = statement.find("else");
  if (otherwise) {
    const Address skip = here();
    emit(statement.node(), action::Jump{});
    at<action::JumpUnless>(test).target = here();
    lower_statements(*otherwise);
    at<action::Jump>(skip).target = here();
  } else {
    at<action::JumpUnless>(test).target = here();
  }
}

// choice and parallel: lists of statements, each a block of its own. A `break` inside cannot leave them: it is not
// defined where the other threads of the rank are at that time.
void Lowering::lower_branches(const Statement& statement) {
  const bool is_parallel = statement.rule().key == "parallel";
  const char* parts = is_parallel ? "threads" : "branches";
  if (!statement.head().is(JsonType::array) || statement.head().size() < 2) {
    read_.error(statement.head(),
                fmt::format("expected a list of at least two {}, each a list of statements", parts));
    return;
  }
  if (!enter_nesting(statement)) {
    return;
  }
  const auto index = static_cast<TableIndex>(program_->branches.size());
  program_->branches.emplace_back();
  emit(statement.node(), is_parallel ? Action(action::Parallel{index}) : Action(action::Choose{index}));
  const bool was_thread = std::exchange(in_thread_, in_thread_ || is_parallel);
  for (Json list : statement.head().children()) {
    std::vector<SlotIndex> own_slots;  // threads run concurrently, so each has loops of its own
    std::vector<SlotIndex>* outer_slots = is_parallel ? std::exchange(loop_slots_, &own_slots) : loop_slots_;
    std::vector<std::vector<Address>> outer_breaks = std::exchange(breaks_, {});
    const Block block = lower_list(list);
    program_->branches[index].blocks.push_back(block);
    breaks_ = std::move(outer_breaks);
    loop_slots_ = outer_slots;
  }
  in_thread_ = was_thread;
  program_->branches[index].end = here();
  --nesting_;
}

bool Lowering::enter_nesting(const Statement& statement) {
  if (nesting_ >= nesting_max) {
    read_.error(statement.node(),
                fmt::format("\"join\", \"try\", \"choice\" and \"parallel\" can be nested at most {} deep",
                            nesting_max));
    return false;
  }
  ++nesting_;
  return true;
}

void Lowering::lower_join(const Statement& statement) {
  if (in_object_) {
    read_.error(statement.node(), "\"join\" inside an object is not supported by this version");
    return;
  }
  if (!enter_nesting(statement)) {
    return;
  }
  JoinCall call;
  if (!statement.head().is(JsonType::array)) {
    read_.error(statement.head(), "expected a list of objects, such as [\"counter\"]");
  }
  for (Json object : statement.head().children()) {
    call.objects.push_back(read_.object(object));
  }
  read_.given(statement.find("throw_on_early_termination"), call.options.throw_on_early_termination,
              &ValueReader::flag);
  read_.given(statement.find("enable"), call.options.enable, &ValueReader::flag);
  read_.given(statement.find("kwargs"), call.options.kwargs, &ValueReader::kwargs);
  const Address enter = here();
  emit(statement.node(), action::EnterJoin{add_entry(program_->joins, std::move(call)), 0});
  if (const auto body = require(statement, "do")) {
    lower_statements(*body);
  }
  at<action::EnterJoin>(enter).end = here();
  --nesting_;
}

void Lowering::lower_try(const Statement& statement) {
  if (!statement.has_object()) {
    read_.error(statement.head(), "write {\"try\": {\"do\": [...], \"except\": [...]}}");
    return;
  }
  if (!enter_nesting(statement)) {
    return;
  }
  const Address enter = here();
  const auto caught = static_cast<TableIndex>(program_->tries++);
  emit(statement.node(), action::Try{0, 0, caught});
  if (const auto body = require(statement, "do")) {
    lower_statements(*body);
  }
  at<action::Try>(enter).handler = here();
  --nesting_;
  if (const auto handler = require(statement, "except")) {
    const TableIndex outer = std::exchange(read_.scope().handler, caught);
    lower_statements(*handler);
    read_.scope().handler = outer;
  }
  at<action::Try>(enter).end = here();
}

// Of a joinable, or of an object that has a part of its own about it.
void Lowering::lower_forward(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (lower_parallel(statement, object, ParallelVerb::forward)) {
    return;
  }
  if (is_model(object)) {
    return lower_model_forward(statement, object);
  }
  if (statement.node().size() > 1) {
    read_.error(statement.node(), "only the forward of a model takes arguments");
  }
  if (in_object_) {
    read_.error(statement.node(), "\"forward\" inside an object is not supported by this version");
  } else {
    emit(statement.node(), action::Forward{object});
  }
}

void Lowering::lower_notify(const Statement& statement) {
  emit(statement.node(), action::Notify{read_.object(statement.head())});
}

}  // namespace rollcall::scenario
