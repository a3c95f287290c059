#include "sim/repair/editing_backend.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <string_view>
#include <vector>

#include "sim/base/expects.h"
#include "sim/c10d/rank_context.h"

namespace rollcall::check {
namespace {

// The tensors of an inserted call, which no program holds. Their values do not affect which calls meet.
struct Made {
  Tensor input{};
  Tensor output{};
  TensorList inputs{};
  TensorList outputs{};
  SplitSizes splits{};
};

// The number of elements that a rank gives in a call of `numel`, and that it gets, in a group of `size`. For scatter,
// `numel` is what each rank gets.
std::int64_t given_numel(const OpRow& row, std::int64_t numel, Rank size) {
  return row.given == Tensors::per_member_on_root ? numel * size : numel;
}

std::int64_t filled_numel(const OpRow& row, std::int64_t numel, Rank size) {
  switch (row.sizes) {
    case Sizes::gathered:
      return numel * size;
    case Sizes::divided:
      return given_numel(row, numel, size) / size;
    case Sizes::equal:
    case Sizes::exchanged:
      break;
  }
  return numel;
}

TensorList parts_of(std::int64_t numel, Rank parts, Dtype dtype, Device device) {
  TensorList list;
  for (Rank i = 0; i < parts; ++i) {
    list.push_back(Tensor::ones({numel / parts}, dtype, device));
  }
  return list;
}

// Makes what `tensors` says that the call passes or fills, of `numel` elements in total.
void make(Tensors tensors, std::int64_t numel, Rank size, bool is_root, const Op& op, Tensor& one,
          TensorList& list) {
  switch (tensors) {
    case Tensors::none:
      return;
    case Tensors::one:
      one = Tensor::ones({numel}, op.dtype, op.device);
      return;
    case Tensors::several:
      list.push_back(Tensor::ones({numel}, op.dtype, op.device));
      return;
    case Tensors::per_member_on_root:
      if (!is_root) {
        return;
      }
      [[fallthrough]];
    case Tensors::per_member:
      list = parts_of(numel, size, op.dtype, op.device);
      return;
  }
}

// A scope with the same pairing as the call's own.
ScopeId scope_of(ScopeTable& scopes, const ProgramCall& call) {
  if (call.pairing.empty()) {
    return no_scope;
  }
  return call.is_strict ? scopes.enter_paired(no_scope, call.pairing, call.pairing)
                        : scopes.enter(no_scope, call.pairing);
}

Op op_of(const ProgramCall& call, const ProcessGroup& group, Made& made) {
  const RankContext& self = this_rank();
  const OpRow& row = row_of(call.kind);
  Op op;
  op.kind = call.kind;
  op.dtype = call.dtype.empty() ? Dtype::float32 : parse_dtype(call.dtype).value_or(Dtype::float32);
  op.reduce = call.reduce;
  op.async_op = call.async_op;
  op.stream = self.stream;
  op.device = self.device;
  op.group = group.id();
  op.rank = group.rank();
  op.root =
      is_point_to_point(call.kind) ? (call.peer < 0 ? -1 : group.members().rank_of(call.peer)) : call.root;
  op.scope = scope_of(*self.scopes, call);
  op.tag = call.tag;
  op.numel = call.numel;
  const bool is_root = op.root == op.rank;
  make(row.given, given_numel(row, call.numel, group.size()), group.size(), is_root, op, made.input,
       made.inputs);
  const std::int64_t filled = call.filled_parts.empty()
                                  ? filled_numel(row, call.numel, group.size())
                                  : std::reduce(call.filled_parts.begin(), call.filled_parts.end());
  make(row.filled, filled, group.size(), is_root, op, made.output, made.outputs);
  op.tensors.input = made.input ? made.input.storage() : nullptr;
  op.tensors.output = made.output ? made.output.storage() : nullptr;
  op.tensors.inputs = made.inputs.empty() ? nullptr : &made.inputs;
  op.tensors.outputs = made.outputs.empty() ? nullptr : &made.outputs;
  if (!call.given_parts.empty() || !call.filled_parts.empty()) {
    made.splits = {call.filled_parts, call.given_parts};
    op.tensors.splits = &made.splits;
    op.uneven = true;
  }
  return op;
}

// The handle of a call that is left out. It is not None, because programs cannot wait for None.
constexpr std::uint32_t left_out_message = 0xfffffffd;
Work left_out(const Op& op) { return {op.group, op.rank, Work::seq_max, left_out_message}; }
bool is_left_out(const Work& work) {
  return work.seq() == Work::seq_max && work.message() == left_out_message;
}

}  // namespace

EditingBackend::EditingBackend(Backend& inner, const CallEdits& edits, Rank rank)
    : ForwardingBackend(inner), edits_(edits_of(edits, rank)) {
  expects(std::ranges::is_sorted(edits_, {}, &CallEdit::at), "a rank's edits are in order");
}

bool EditingBackend::goes_on() const { return next_ < edits_.size(); }

bool EditingBackend::ends_at_edit() const {
  return !edits_.empty() && !goes_on() && edits_.back().dropped > 0 && calls_ == left_out_until_;
}

void EditingBackend::finish() {
  while (next_ < edits_.size()) {
    calls_ = std::max(calls_, edits_[next_].at);
    pass();
  }
}

bool EditingBackend::pass() {
  while (next_ < edits_.size() && edits_[next_].at <= calls_) {
    const CallEdit& edit = edits_[next_++];
    call_instead(edit.inserted);
    left_out_until_ = std::max(left_out_until_, edit.at + edit.dropped);
  }
  return calls_++ < left_out_until_;
}

ProcessGroup EditingBackend::group_of(const ProgramCall& call) {
  const auto made = made_.find(call.group_made_by);
  return made != made_.end() ? made->second
                             : (call.group == "world" ? this_rank().world : inner().find_group(call.group));
}

void EditingBackend::call_instead(std::span<const ProgramCall> calls) {
  while (!calls.empty()) {
    // Calls of one batch are one batch again: separately, its messages might wait for each other.
    const std::int64_t batch = calls.front().batch;
    std::size_t count = 1;
    while (batch >= 0 && count < calls.size() && calls[count].batch == batch) {
      ++count;
    }
    std::deque<Made> made;
    std::vector<Op> ops;
    for (const ProgramCall& call : calls.first(count)) {
      const ProcessGroup group = group_of(call);
      if (group && group.is_member()) {
        ops.push_back(op_of(call, group, made.emplace_back()));
      }
    }
    calls = calls.subspan(count);
    const std::vector<Work> works =
        batch >= 0 ? inner().issue_batch(ops)
                   : (ops.empty() ? std::vector<Work>() : std::vector<Work>{inner().issue(ops.front())});
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (batch >= 0 || !ops[i].async_op) {
        inner().wait(works[i]);
      }
    }
  }
}

Work EditingBackend::issue(const Op& op) { return pass() ? left_out(op) : inner().issue(op); }

std::vector<Work> EditingBackend::issue_batch(std::span<const Op> ops) {
  std::vector<Op> left;
  std::vector<Work> works(ops.size());
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (pass()) {
      works[i] = left_out(ops[i]);
    } else {
      left.push_back(ops[i]);
      places.push_back(i);
    }
  }
  const std::vector<Work> issued = left.empty() ? std::vector<Work>() : inner().issue_batch(left);
  for (std::size_t i = 0; i < issued.size(); ++i) {
    works[places[i]] = issued[i];
  }
  return works;
}

void EditingBackend::wait(const Work& work) {
  if (!is_left_out(work)) {
    inner().wait(work);
  }
}

void EditingBackend::wait_for(const Work& work, Duration timeout) {
  if (!is_left_out(work)) {
    inner().wait_for(work, timeout);
  }
}

void EditingBackend::wait_any(std::span<const Work> works) {
  if (std::ranges::none_of(works, is_left_out)) {
    inner().wait_any(works);
  }
}

bool EditingBackend::is_completed(const Work& work) {
  return is_left_out(work) || inner().is_completed(work);
}

bool EditingBackend::drop(const Work& work) { return !is_left_out(work) && inner().drop(work); }

Rank EditingBackend::source_of(const Work& work) { return is_left_out(work) ? 0 : inner().source_of(work); }

ProcessGroup EditingBackend::manage(GroupCall call) {
  const std::int64_t number = calls_;
  pass();  // calls about groups are never left out
  const ProcessGroup group = inner().manage(std::move(call));
  made_[number] = group;
  return group;
}

}  // namespace rollcall::check
