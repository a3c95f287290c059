// Lowering, the part about statements that concern one rank alone.

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/program/lowering.h"

namespace rollcall::scenario {

void Lowering::lower_wait(const Statement& statement) {
  action::Wait wait{read_.work(statement.head())};
  if (const auto timeout = statement.find("timeout")) {
    wait.timeout = read_.duration(*timeout);
  }
  emit(statement.node(), wait);
}

void Lowering::lower_raise(const Statement& statement) {
  const auto message = statement.subject();
  if (message && !message->is(JsonType::string)) {
    read_.error(*message, fmt::format("expected a message or {{\"type\": …, \"message\": …}}, found {}",
                                      to_phrase(message->type())));
    return;
  }
  const auto type = statement.find("type");
  const std::string_view type_name = type ? read_.string(*type, "an exception's type") : "RuntimeError";
  TableIndex text = none;
  if (message) {
    text = read_.text(*message);
  } else {
    program_->texts.emplace_back();
    text = static_cast<TableIndex>(program_->texts.size() - 1);
  }
  emit(statement.node(), action::Raise{read_.intern(type_name), text});
}

void Lowering::lower_exit(const Statement& statement) {
  if (!statement.head().is(JsonType::boolean) || !statement.head().boolean()) {
    read_.error(statement.head(), "write {\"exit\": true}");
  }
  emit(statement.node(), action::Exit{});
}

void Lowering::lower_compute(const Statement& statement) {
  action::Compute compute{read_.duration(statement.head())};
  if (const auto jitter = statement.find("jitter")) {
    compute.jitter = read_.fraction(*jitter);
  }
  emit(statement.node(), compute);
}

void Lowering::lower_item(const Statement& statement) {
  action::Item item;
  item.tensor = read_.tensor_name(statement.head());
  if (const auto variable = statement.find("as")) {
    const auto name = names_.find(read_.string(*variable, "a variable's name"));
    item.variable = name ? name->slot : no_slot;
  }
  emit(statement.node(), item);
}

void Lowering::lower_fill(const Statement& statement) {
  TensorSpec spec = read_tensor(statement, false);
  if (const auto value = require(statement, "value")) {
    spec.value = read_.number(*value);
  }
  spec.creates = true;
  program_->tensors.push_back(spec);
  emit(statement.node(), action::Fill{static_cast<TableIndex>(program_->tensors.size() - 1)});
}

void Lowering::lower_add(const Statement& statement) {
  action::Add add;
  add.target = read_.tensor(statement.head());
  const auto tensor = statement.find("tensor");
  const auto value = statement.find("value");
  if (tensor.has_value() == value.has_value()) {
    read_.error(statement.node(), "\"add\" needs either \"tensor\" or \"value\"");
  } else if (tensor) {
    add.tensor = read_.tensor_name(*tensor);
  } else {
    add.value = read_.number(*value);
  }
  emit(statement.node(), add);
}

void Lowering::lower_copy(const Statement& statement) {
  action::Copy copy;
  copy.target = read_.tensor(statement.head());
  if (const auto source = require(statement, "from")) {
    copy.source = read_.tensor_name(*source);
  }
  emit(statement.node(), copy);
}

void Lowering::lower_check(const Statement& statement) {
  action::Check check;
  program_->checks = true;
  check.tensor = read_.tensor_name(statement.head());
  check.name = read_.intern(statement.head().is(JsonType::string) ? statement.head().text() : "");
  if (const auto value = require(statement, "value")) {
    check.value = read_.number(*value);
  }
  emit(statement.node(), check);
}

void Lowering::lower_touch(const Statement& statement) {
  using Access = Observation::Access;
  const std::string_view key = statement.rule().key;
  action::Touch touch;
  touch.tensor = read_.tensor_name(statement.head());
  touch.access = key == "write" ? Access::write : key == "free" ? Access::free : Access::read;
  emit(statement.node(), touch);
}

void Lowering::lower_synchronize(const Statement& statement) {
  if (!statement.head().is(JsonType::boolean) || !statement.head().boolean()) {
    read_.error(statement.head(), "write {\"synchronize\": true}");
  }
  program_->synchronizes = true;
  emit(statement.node(), action::Synchronize{});
}

void Lowering::lower_set_device(const Statement& statement) {
  if (const auto device = read_.device(statement.head())) {
    emit(statement.node(), action::SetDevice{*device});
  }
}

}  // namespace rollcall::scenario
