// Lowering, the part about collectives: the tensors of a call, and how they are made.

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/program/lowering.h"
#include "sim/base/expects.h"

namespace rollcall::scenario {
namespace {

// True if the result is in another tensor, or list, than the statement's.
bool has_output(OpKind kind) {
  return !works_in_place(kind) && row_of(kind).given != Tensors::per_member_on_root;
}

}  // namespace

void Lowering::lower_collective(const Statement& statement) {
  const std::optional<OpKind> kind = statement.rule().op;
  expects(kind.has_value(), "the rule of a collective names its operation");
  const Json& head = statement.head();
  if (has_tensor(*kind) && !head.is(JsonType::string) && !head.is(JsonType::object)) {
    read_.error(head, fmt::format("expected a tensor's name or an object of arguments, found {}",
                                  to_phrase(head.type())));
    return;
  }
  Collective call;
  call.kind = *kind;
  call.functional = statement.rule().functional;
  if (call.functional) {
    require(statement, "output");
  }
  read_call(statement, call);
  if (has_tensor(*kind)) {
    read_.scope().takes_list = gives_list(*kind);
    call.tensor = read_tensor(statement, !call.async_op && !call.functional && !in_thread_);
    read_.scope().takes_list = false;
    read_lists(statement, call);
    read_splits(statement, call);
  } else {
    read_.given(statement.find("device"), call.tensor.device, &ValueReader::device);
  }
  if (!has_tensor(*kind) && !head.is(JsonType::object)) {
    read_.error(head, "a barrier has no tensor: write {\"barrier\": {}} or {\"barrier\": {\"group\": …}}");
  }
  emit(statement.node(), action::Collect{add_entry(program_->collectives, call)});
}

// The calls of a _coalescing_manager are alive at the same time, so they cannot share tensors.
std::optional<Collective> Lowering::read_coalesced(const Json& node) {
  const auto statement = Statement::recognize(node);
  const std::optional<OpKind> kind = statement ? statement->rule().op : std::nullopt;
  const bool fits = kind && !statement->rule().functional &&
                    (*kind == OpKind::all_reduce || *kind == OpKind::all_gather_into_tensor ||
                     *kind == OpKind::reduce_scatter_tensor);
  if (!fits) {
    read_.error(
        node,
        "a _coalescing_manager takes all_reduce, all_gather_into_tensor or reduce_scatter_tensor: put "
        "other calls before or behind it");
    return std::nullopt;
  }
  check_arguments(*statement);
  for (const char* argument : {"group", "async_op", "as", "label", "stream"}) {
    if (const auto own = statement->find(argument)) {
      read_.error(*own, fmt::format("a _coalescing_manager has one \"{}\" for all its calls: put it next to "
                                    "\"_coalescing_manager\"",
                                    std::string_view(argument) == "async_op" ? "async_ops" : argument));
    }
  }
  Collective call;
  call.kind = *kind;
  read_call(*statement, call);
  call.tensor = read_tensor(*statement, false);
  if (has_output(call.kind)) {
    call.output = statement->find("output") ? read_output(*statement, call.kind) : names_.add_tensor();
  }
  return call;
}

void Lowering::lower_coalesced(const Statement& statement) {
  if (!statement.head().is(JsonType::array)) {
    read_.error(statement.head(),
                "expected a list of calls, such as [{\"all_reduce\": \"a\"}, {\"all_reduce\": \"b\"}]");
    return;
  }
  CoalescedCalls calls;
  read_.given(statement.find("group"), calls.group, &ValueReader::group);
  read_.given(statement.find("async_ops"), calls.async_ops, &ValueReader::flag);
  if (const auto work = statement.find("as")) {
    calls.work = read_.work(*work);
    if (!calls.async_ops) {
      read_.error(*work, "\"as\" names what asynchronous calls return: add \"async_ops\": true");
    }
  }
  calls.label = read_label(statement);
  calls.first = static_cast<TableIndex>(program_->collectives.size());
  for (Json node : statement.head().children()) {
    if (std::optional<Collective> call = read_coalesced(node)) {
      call->group = calls.group;
      call->work = calls.work;
      program_->collectives.push_back(*std::move(call));
      ++calls.count;
    }
  }
  emit(statement.node(), action::Coalesce{add_entry(program_->coalesced, calls)});
}

// Reads everything that does not concern tensors.
void Lowering::read_call(const Statement& statement, Collective& call) {
  read_.given(statement.find("group"), call.group, &ValueReader::group);
  read_.given(statement.find("reduce_op"), call.reduce, &ValueReader::reduce_op);
  if (const auto factor = statement.find("factor")) {
    call.factor = read_.number(*factor);
    if (call.reduce != ReduceOp::premul_sum) {
      read_.error(*factor, "only PREMUL_SUM has a factor: add \"reduce_op\": \"PREMUL_SUM\"");
    }
  }
  if (has_root(call.kind)) {
    const auto root = statement.find(root_argument(call.kind));
    call.root = root ? read_.rank(*root) : Operand::of(0);
  }
  call.label = read_label(statement);
  read_.given(statement.find("stream"), call.stream, &ValueReader::stream);
  read_.given(statement.find("async_op"), call.async_op, &ValueReader::flag);
  if (const auto work = statement.find("as")) {
    call.work = read_.work(*work);
    if (!call.async_op) {
      read_.error(*work, "\"as\" names what an asynchronous call returns: add \"async_op\": true");
    }
  }
}

void Lowering::read_lists(const Statement& statement, Collective& call) {
  if (has_output(call.kind) || call.functional) {
    call.output = read_output(statement, call.kind);
  }
  if (!gives_list(call.kind)) {
    return;
  }
  if (scratch_inputs_ == no_slot) {
    scratch_inputs_ = names_.add_list();
  }
  call.input_list = scratch_inputs_;
  call.value_has_peer = read_.mentions_peer(call.tensor.value);
  if (call.value_has_peer && !call.tensor.scratch && has_output(call.kind)) {
    read_.error(statement.node(),
                "with \"peer\" in its value, the call creates its own tensors, one per rank; leave out the "
                "tensor's name");
  }
}

void Lowering::read_splits(const Statement& statement, Collective& call) {
  const auto input = statement.find("input_split_sizes");
  const auto output = statement.find("output_split_sizes");
  if (!input && !output) {
    return;
  }
  const auto sizes_in = [this](const auto& node) {
    return node ? read_.integers(*node, "a list of sizes, one per rank of the group")
                : std::vector<Operand>();
  };
  Splits splits{sizes_in(output), sizes_in(input)};
  if (!splits.output.empty() || !splits.input.empty()) {  // as in torch, an empty list means equal parts
    call.splits = add_entry(program_->splits, std::move(splits));
  }
}

SlotIndex Lowering::read_output(const Statement& statement, OpKind kind) {
  if (const auto output = statement.find("output")) {
    const std::string_view name = read_.string(*output, "the output's name");
    const auto subject = statement.subject();
    if (subject && subject->is(JsonType::string) && subject->text() == name) {
      read_.error(*output, "the output needs its own tensor; give it another name");
    }
    const auto found = names_.find(name);
    return found ? found->slot : 0;
  }
  SlotIndex& scratch = fills_list(kind) ? scratch_outputs_ : scratch_output_;
  if (scratch == no_slot) {
    scratch = fills_list(kind) ? names_.add_list() : names_.add_tensor();
  }
  return scratch;
}

// The tensor that a statement is about: its subject by name, or one without a name.
TensorSpec Lowering::read_tensor(const Statement& statement, bool may_share) {
  TensorSpec spec;
  const auto name = statement.subject();
  const auto shape = statement.find("shape");
  const auto numel = statement.find("numel");
  read_.given(statement.find("dtype"), spec.dtype, &ValueReader::dtype);
  read_.given(statement.find("device"), spec.device, &ValueReader::device);
  read_.given(statement.find("value"), spec.value, &ValueReader::number);
  if (shape && numel) {
    read_.error(*numel, "give either \"shape\" or \"numel\"");
  } else if (shape) {
    spec.shape = read_.shape(*shape);
  } else if (numel) {
    spec.numel = read_.integer_in(*numel, 0, numel_max, "numel");
  }
  spec.scratch = !name.has_value();
  spec.creates = spec.scratch || spec.dtype || spec.device || spec.value || shape || numel;
  if (spec.scratch && !spec.value) {
    spec.value = Operand::of(1);
  }
  spec.slot = name ? read_.tensor(*name) : scratch_tensor(spec, may_share);
  return spec;
}

// Blocking calls that need the same kind of tensor can use the same one: it is not read afterwards.
SlotIndex Lowering::scratch_tensor(const TensorSpec& spec, bool may_share) {
  const bool is_fixed = spec.numel.kind != Operand::Kind::expression && spec.shape == none;
  if (!may_share || !is_fixed) {
    return names_.add_tensor();
  }
  const ScratchLook look{spec.dtype.value_or(Dtype::float32), spec.device,
                         spec.numel ? spec.numel.integer : -1};
  const auto [entry, is_new] = scratch_tensors_.try_emplace(look, no_slot);
  if (is_new) {
    entry->second = names_.add_tensor();
  }
  return entry->second;
}

}  // namespace rollcall::scenario
