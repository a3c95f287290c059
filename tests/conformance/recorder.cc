#include "tests/conformance/recorder.h"

#include <algorithm>
#include <initializer_list>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/rank_context.h"

namespace rollcall::golden {

namespace {

// The golden files keep input values only up to this many elements.
constexpr std::int64_t shown_elements = 12;

std::vector<const Storage*> tensors_of(const Storage* single, const TensorList* list) {
  std::vector<const Storage*> tensors;
  if (single != nullptr) {
    tensors.push_back(single);
  }
  if (list != nullptr) {
    for (const Tensor& tensor : *list) {
      tensors.push_back(tensor.storage());
    }
  }
  return tensors;
}

std::vector<std::int64_t> sizes_of(const std::vector<const Storage*>& tensors) {
  std::vector<std::int64_t> sizes;
  for (const Storage* tensor : tensors) {
    sizes.push_back(tensor->numel);
  }
  return sizes;
}

// True if the caller's input has a meaning; a receiver's buffer does not. The harness kept no values of calls that the
// Gloo of 1.13 lacks, or of coalesced calls.
bool sends(const Op& op) {
  const OpRow& row = row_of(op.kind);
  if (row.family != Family::collective) {
    return op.kind == OpKind::send;
  }
  return row.root == Root::source ? op.rank == op.root
                                  : row.given == Tensors::one && row.gloo_since == TorchRelease::v1_13;
}

std::optional<std::vector<Bits>> shown_input(const Op& op, const std::vector<const Storage*>& inputs) {
  std::int64_t total = 0;
  for (const Storage* tensor : inputs) {
    if (tensor->form == Storage::Form::meta || tensor->device.type != DeviceType::cpu) {
      return std::nullopt;
    }
    total += tensor->numel;
  }
  if (is_complex(op.dtype) || !sends(op) || inputs.empty() || total > shown_elements) {
    return std::nullopt;
  }
  std::vector<Bits> elements;
  for (const Storage* tensor : inputs) {
    for (std::int64_t i = 0; i < tensor->numel; ++i) {
      elements.push_back(tensor->at(i));
    }
  }
  return elements;
}

// Returns "g1[0,2]". The world has no such suffix, because every rank is in it.
std::string group_label(const GroupMembers& members) {
  if (members.id == world_group) {
    return members.name;
  }
  std::string label = members.name + "[";
  for (Rank rank : members.ranks) {
    label += (label.back() == '[' ? "" : ",") + std::to_string(rank);
  }
  return label + "]";
}

bool begins_with(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return name.starts_with(word); });
}

// FSDP's own places have no names in the golden files, which name its caller instead.
std::string_view site_of(ScopeId scope, const ScopeTable& scopes) {
  const bool is_inner = begins_with(scopes.name(scope), {"FSDP::", "fsdp."});
  return scopes.name(is_inner ? scopes.parent(scope) : scope);
}

// DTensor uses functional collectives, which the harness did not see.
bool was_seen(const Op& op) { return !this_rank().scopes->name(op.scope).starts_with("DTensor."); }

OpRecord record_of(const Op& op, const RankContext& self) {
  std::vector<const Storage*> inputs = tensors_of(op.tensors.input, op.tensors.inputs);
  std::vector<const Storage*> outputs = tensors_of(op.tensors.output, op.tensors.outputs);
  if (op.kind == OpKind::scatter) {
    // The tensor passed to scatter is the receiver's, whether it is the Op's input or output.
    inputs = tensors_of(nullptr, op.tensors.inputs);
    outputs = tensors_of(op.tensors.output != nullptr ? op.tensors.output : op.tensors.input, nullptr);
  }
  OpRecord record;
  record.kind = op.kind;
  record.group_id = op.group;
  record.numel = sizes_of(inputs);
  if (!is_point_to_point(op.kind) && !works_in_place(op.kind)) {
    record.out_numel = sizes_of(outputs);
    if (op.kind == OpKind::all_gather && op.tensors.outputs == nullptr && op.numel > 0) {
      record.out_numel->assign(static_cast<std::size_t>(op.tensors.output->numel / op.numel), op.numel);
    }
  }
  if (op.kind == OpKind::all_to_all_single) {
    record.splits = op.tensors.splits != nullptr ? *op.tensors.splits : SplitSizes{};
  }
  record.meta = op.device.type == DeviceType::meta && has_tensor(op.kind);
  record.async_op = op.async_op;
  record.site = site_of(op.scope, *self.scopes);
  record.input = shown_input(op, inputs);
  if (has_tensor(op.kind) && !(inputs.empty() && outputs.empty())) {
    record.dtype = op.dtype;
  }
  if (has_reduce_op(op.kind)) {
    record.reduce = op.reduce;
  }
  if (record.is_message()) {
    record.tag = op.tag;
    if (op.kind == OpKind::send || op.root >= 0) {
      record.peer = op.root;
    }
  } else if (has_root(op.kind)) {
    record.root = op.root;
  }
  return record;
}

}  // namespace

// An Op has only the group's number. Groups of a golden case are called g<number>.
std::string Recorder::label_of(GroupId group) {
  if (destroyed_.contains(group)) {
    return "new";  // the harness's name for groups that torch had forgotten
  }
  const auto made = made_.find(group);
  const ProcessGroup found = group == world_group  ? this_rank().world
                             : made != made_.end() ? made->second
                                                   : inner().find_group("g" + std::to_string(group));
  expects(static_cast<bool>(found), "groups of a golden case are called g1, g2, ... in order of creation");
  return group_label(found.members());
}

OpRecord& Recorder::note(const Op& op) {
  const RankContext& self = this_rank();
  RankLog& log = log_[static_cast<std::size_t>(self.rank)];
  OpRecord record = record_of(op, self);
  record.group = label_of(op.group);
  record.index = static_cast<std::int64_t>(log.ops.size());
  if (!record.is_message()) {
    record.collective_index = log.issued[op.group]++;
  }
  log.ops.push_back(std::move(record));
  return log.ops.back();
}

ProcessGroup Recorder::manage(GroupCall call) {
  const Op op = call.op;
  const ProcessGroup group = inner().manage(std::move(call));
  if (group.is_member()) {
    made_[group.id()] = group;
  }
  if (op.kind == OpKind::destroy_process_group) {
    destroyed_.insert(op.group);
  }
  return group;
}

void Recorder::monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) {
  OpRecord& record = note(op);
  record.wait_all_ranks = limits.wait_all_ranks;
  record.seq = record.collective_index;  // a rank's calls are numbered in their order
  try {
    inner().monitored_barrier(op, limits);
  } catch (const Error& error) {
    record.raised = error.what();
    throw;
  }
}

Work Recorder::issue(const Op& op) {
  if (!was_seen(op)) {
    return inner().issue(op);
  }
  OpRecord& record = note(op);
  try {
    const Work work = inner().issue(op);
    record.seq = work.seq();
    return work;
  } catch (const Error& error) {
    record.raised = error.what();
    throw;
  }
}

std::vector<Work> Recorder::issue_batch(std::span<const Op> ops) {
  std::vector<OpRecord>& log = log_[static_cast<std::size_t>(this_rank().rank)].ops;
  const std::size_t first = log.size();
  for (const Op& op : ops) {
    note(op);
  }
  try {
    std::vector<Work> works = inner().issue_batch(ops);
    for (std::size_t i = 0; i < works.size(); ++i) {
      log[first + i].seq = works[i].seq();
    }
    return works;
  } catch (const Error& error) {
    for (std::size_t i = first; i < log.size(); ++i) {
      log[i].raised = error.what();  // a batch is always refused as a whole
    }
    throw;
  }
}

void Recorder::wait(const Work& work) {
  try {
    inner().wait(work);
  } catch (const Error& error) {
    for (OpRecord& record : log_[static_cast<std::size_t>(this_rank().rank)].ops) {
      if (record.is_of(work)) {
        record.failed = error.what();
      }
    }
    throw;
  }
}

std::string_view recorded_name(OpKind kind) {
  if (kind == OpKind::all_gather_into_tensor) {
    return "all_gather_base";
  }
  return kind == OpKind::reduce_scatter_tensor ? "reduce_scatter_base" : to_string(kind);
}

std::string_view recorded_name(const OpRecord& record) {
  return record.kind == OpKind::recv && !record.peer ? "recv_any" : recorded_name(record.kind);
}

}  // namespace rollcall::golden
