// Lowering, the part about statements that concern one rank alone.

#include <fmt/format.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/lowering.h"

namespace rollcall::scenario {

void Lowering::lower_wait(const Statement& statement) {
  action::Wait wait{read_.work(statement.head())};
  read_.given(statement.find("timeout"), wait.timeout, &ValueReader::duration);
  wait.stream = read_stream(statement);
  emit(statement.node(), wait);
}

void Lowering::lower_drop(const Statement& statement) {
  emit(statement.node(), action::Drop{read_.work(statement.head())});
}

void Lowering::lower_wait_stream(const Statement& statement) {
  emit(statement.node(), action::WaitStream{read_.stream(statement.head()), read_stream(statement)});
}

void Lowering::lower_print(const Statement& statement) {
  emit(statement.node(), action::Print{read_.text(statement.head())});
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
  const TableIndex text = message ? read_.text(*message) : add_entry(program_->texts, Text());
  emit(statement.node(), action::Raise{read_.intern(type_name), text});
}

void Lowering::lower_exit(const Statement& statement) {
  require_true(statement);
  emit(statement.node(), action::Exit{});
}

void Lowering::lower_compute(const Statement& statement) {
  action::Compute compute{read_.duration(statement.head())};
  read_.given(statement.find("jitter"), compute.jitter, &ValueReader::fraction);
  emit(statement.node(), compute);
}

SlotIndex Lowering::read_stream(const Statement& statement) {
  const auto stream = statement.find("stream");
  return stream ? read_.stream(*stream) : no_slot;
}

void Lowering::lower_kernel(const Statement& statement) {
  action::LaunchKernel kernel;
  if (const auto time = statement.subject()) {
    kernel.duration = read_.duration(*time);
  }
  read_work(statement, kernel);
  if (statement.subject().has_value() == kernel.by_roofline()) {
    read_.error(statement.head(),
                "a kernel has either a \"time\", or \"flops\" and \"bytes\" that a time follows from");
  }
  if (kernel.by_roofline()) {
    require_gpu(statement.head());
  }
  if (kernel.by_roofline() && facts_.gpu != nullptr &&
      !cost::time_of(*facts_.gpu, {.flops = 1, .precision = kernel.precision, .kind = kernel.kind})) {
    const auto dtype = statement.find("dtype");
    read_.error(dtype.value_or(statement.head()),
                fmt::format("{} has no units for this type", facts_.gpu->name));
  }
  const auto name = statement.find("name");
  kernel.name = read_.intern(name                   ? read_.string(*name, "a kernel's name")
                             : kernel.by_roofline() ? to_string(kernel.kind)
                                                    : "kernel");
  kernel.stream = read_stream(statement);
  read_.given(statement.find("jitter"), kernel.jitter, &ValueReader::fraction);
  emit(statement.node(), kernel);
}

// For statements whose time is that of a GPU.
void Lowering::require_gpu(const Json& node) {
  if (facts_.gpu == nullptr && !facts_.no_gpu.empty()) {
    read_.error(node, facts_.no_gpu);
  }
}

namespace {

template <typename Value>
Value known_word(ValueReader& read, const Json& value, std::string_view what,
                 std::optional<Value> (*parse)(std::string_view),
                 const std::vector<std::string_view>& words) {
  const std::string_view word = read.string(value, what);
  const std::optional<Value> found = parse(word);
  if (!found && !word.empty()) {
    read.error(value, fmt::format("unknown {} \"{}\"; use one of {}", what, word, fmt::join(words, ", ")),
               suggest(word, words));
  }
  return found.value_or(Value{});
}

}  // namespace

void Lowering::read_work(const Statement& statement, action::LaunchKernel& kernel) {
  read_.given(statement.find("flops"), kernel.flops, &ValueReader::amount);
  read_.given(statement.find("bytes"), kernel.bytes, &ValueReader::amount);
  kernel.kind = kernel.flops ? cost::KernelKind::matmul : cost::KernelKind::elementwise;
  if (const auto kind = statement.find("kind")) {
    kernel.kind =
        known_word(read_, *kind, "kind of kernel", cost::parse_kernel_kind, cost::kernel_kind_names());
  }
  if (const auto dtype = statement.find("dtype")) {
    kernel.precision = known_word(read_, *dtype, "dtype", cost::parse_precision, cost::precision_names());
  }
}

void Lowering::lower_event(const Statement& statement) {
  const SlotIndex event = read_.event(statement.head());
  const SlotIndex stream = read_stream(statement);
  if (statement.rule().key == "record_event") {
    emit(statement.node(), action::RecordEvent{event, stream});
  } else {
    emit(statement.node(), action::WaitEvent{event, stream});
  }
}

void Lowering::lower_item(const Statement& statement) {
  action::Item item;
  item.tensor = read_.tensor_name(statement.head());
  read_.given(statement.find("as"), item.variable, &ValueReader::variable);
  emit(statement.node(), item);
}

void Lowering::lower_fill(const Statement& statement) {
  TensorSpec spec = read_tensor(statement, false);
  if (const auto value = require(statement, "value")) {
    spec.value = read_.number(*value);
  }
  spec.creates = true;
  emit(statement.node(), action::Fill{add_entry(program_->tensors, spec)});
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
  require_true(statement);
  program_->synchronizes = true;
  emit(statement.node(), action::Synchronize{});
}

void Lowering::lower_set_device(const Statement& statement) {
  if (const auto device = read_.device(statement.head())) {
    emit(statement.node(), action::SetDevice{*device});
  }
}

}  // namespace rollcall::scenario
