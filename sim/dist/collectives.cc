#include "sim/dist/collectives.h"

#include <fmt/format.h>

#include "sim/dist/error.h"
#include "sim/dist/rank_context.h"

namespace rollcall {
namespace {

const ProcessGroup& or_world(const RankContext& self, const ProcessGroup& group) { return group ? group : self.world; }

// torch warns and returns without communicating when the caller is not in the group
// (distributed_c10d.py, _warn_not_in_group).
bool outside(const ProcessGroup& group, OpKind kind) {
  if (group.is_member()) [[likely]] {
    return false;
  }
  warn(fmt::format("Running {} on global rank {} which does not belong to the given group.", to_string(kind),
                   this_rank().rank));
  return true;
}

Rank root_in(const ProcessGroup& group, Rank global) {
  const Rank root = group.members().rank_of(global);
  if (root < 0) {
    throw ValueError(fmt::format("Global rank {} is not part of group {}", global, group.name()));
  }
  return root;
}

Op start(const RankContext& self, OpKind kind, const ProcessGroup& group, bool async_op, const Site& site) {
  Op op;
  op.kind = kind;
  op.group = group.id();
  op.rank = group.rank();
  op.async_op = async_op;
  op.scope = self.scope;
  op.shadow = self.shadowing;
  op.site = site;
  return op;
}

void take_input(Op& op, const Tensor& tensor) {
  if (!tensor) {
    throw TypeError(fmt::format("Invalid function argument. Expected parameter `tensor` of {} to be a tensor",
                                to_string(op.kind)));
  }
  op.tensors.input = tensor.storage();
  op.dtype = tensor.dtype();
  op.device = tensor.device();
  op.numel = tensor.numel();
}

// A list argument: one tensor per member, all of one dtype. numel becomes the sum over the list.
void take_inputs(Op& op, const TensorList& tensors) {
  take_input(op, tensors.front());
  op.tensors.input = nullptr;
  op.tensors.inputs = &tensors;
  op.numel = 0;
  for (const Tensor& tensor : tensors) {
    op.numel += tensor.numel();
  }
}

void require_list(const TensorList& tensors, const ProcessGroup& group, OpKind kind, const char* what) {
  if (tensors.size() != static_cast<std::size_t>(group.size())) {
    throw ValueError(fmt::format("{}: {} must hold one tensor per rank of the group, {} for {} ranks",
                                 to_string(kind), what, tensors.size(), group.size()));
  }
}

void require_elements(bool agree, OpKind kind, const char* rule) {
  if (!agree) {
    throw ValueError(fmt::format("{}: {}", to_string(kind), rule));
  }
}

void require_reduction(const Op& op) {
  if (!supports(op.reduce, op.dtype)) {
    throw RuntimeError(fmt::format("Cannot use ReduceOp.{} with tensors of type {}", to_string(op.reduce),
                                   scalar_type_name(op.dtype)));
  }
}

Work issue(const RankContext& self, const Op& op) {
  spend_step(self);
  const Work work = self.backend->issue(op);
  if (op.async_op) {
    return work;
  }
  work.wait();
  return {};
}

}  // namespace

Rank get_rank(const ProcessGroup& group) { return group ? group.rank() : this_rank().rank; }
Rank get_world_size(const ProcessGroup& group) { return or_world(this_rank(), group).size(); }
ProcessGroup world() { return this_rank().world; }
ProcessGroup find_group(std::string_view name) { return this_rank().backend->find_group(name); }

Work all_reduce(const Tensor& tensor, const ReduceOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_reduce)) {
    return {};
  }
  Op op = start(self, OpKind::all_reduce, group, options.async_op, site);
  take_input(op, tensor);
  op.reduce = options.op;
  require_reduction(op);
  return issue(self, op);
}

Work broadcast(const Tensor& tensor, Rank src, const CollectiveOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::broadcast)) {
    return {};
  }
  Op op = start(self, OpKind::broadcast, group, options.async_op, site);
  take_input(op, tensor);
  op.root = root_in(group, src);
  return issue(self, op);
}

Work reduce(const Tensor& tensor, Rank dst, const ReduceOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::reduce)) {
    return {};
  }
  Op op = start(self, OpKind::reduce, group, options.async_op, site);
  take_input(op, tensor);
  op.reduce = options.op;
  op.root = root_in(group, dst);
  require_reduction(op);
  return issue(self, op);
}

Work all_gather(const TensorList& outputs, const Tensor& tensor, const CollectiveOptions& options,
                Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_gather)) {
    return {};
  }
  Op op = start(self, OpKind::all_gather, group, options.async_op, site);
  take_input(op, tensor);
  require_list(outputs, group, op.kind, "the output list");
  for (const Tensor& output : outputs) {
    require_elements(output.numel() == tensor.numel() && output.dtype() == tensor.dtype(), op.kind,
                     "every output must have the input's size and dtype");
  }
  op.tensors.outputs = &outputs;
  return issue(self, op);
}

Work all_gather_into_tensor(const Tensor& output, const Tensor& input, const CollectiveOptions& options,
                            Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_gather_into_tensor)) {
    return {};
  }
  Op op = start(self, OpKind::all_gather_into_tensor, group, options.async_op, site);
  take_input(op, input);
  require_elements(output.dtype() == input.dtype(), op.kind,
                   "output tensor must have the same type as input tensor");
  require_elements(output.numel() == input.numel() * group.size(), op.kind,
                   "output tensor size must be equal to world_size times input tensor size");
  op.tensors.output = output.storage();
  return issue(self, op);
}

Work gather(const Tensor& tensor, const TensorList& outputs, Rank dst, const CollectiveOptions& options,
            Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::gather)) {
    return {};
  }
  Op op = start(self, OpKind::gather, group, options.async_op, site);
  take_input(op, tensor);
  op.root = root_in(group, dst);
  if (op.root == op.rank) {
    require_list(outputs, group, op.kind, "gather_list on the destination rank");
    op.tensors.outputs = &outputs;
  } else {
    require_elements(outputs.empty(), op.kind,
                     "gather_list must not be given on a rank that is not the destination");
  }
  return issue(self, op);
}

Work scatter(const Tensor& tensor, const TensorList& inputs, Rank src, const CollectiveOptions& options,
             Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::scatter)) {
    return {};
  }
  Op op = start(self, OpKind::scatter, group, options.async_op, site);
  take_input(op, tensor);
  op.tensors = {.output = tensor.storage()};
  op.root = root_in(group, src);
  if (op.root == op.rank) {
    require_list(inputs, group, op.kind, "scatter_list on the source rank");
    op.tensors.inputs = &inputs;
  } else {
    require_elements(inputs.empty(), op.kind,
                     "scatter_list must not be given on a rank that is not the source");
  }
  return issue(self, op);
}

Work reduce_scatter(const Tensor& output, const TensorList& inputs, const ReduceOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::reduce_scatter)) {
    return {};
  }
  Op op = start(self, OpKind::reduce_scatter, group, options.async_op, site);
  require_list(inputs, group, op.kind, "the input list");
  take_inputs(op, inputs);
  require_elements(inputs[static_cast<std::size_t>(op.rank)].numel() == output.numel(), op.kind,
                   "the output must have the size of the input for this rank");
  op.tensors.output = output.storage();
  op.reduce = options.op;
  require_reduction(op);
  return issue(self, op);
}

Work reduce_scatter_tensor(const Tensor& output, const Tensor& input, const ReduceOptions& options,
                           Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::reduce_scatter_tensor)) {
    return {};
  }
  Op op = start(self, OpKind::reduce_scatter_tensor, group, options.async_op, site);
  take_input(op, input);
  require_elements(output.dtype() == input.dtype(), op.kind,
                   "input tensor must be the same type as the output tensor");
  require_elements(input.numel() == output.numel() * group.size(), op.kind,
                   "input tensor must be the same size as output size times world size");
  op.tensors.output = output.storage();
  op.reduce = options.op;
  require_reduction(op);
  return issue(self, op);
}

Work all_to_all(const TensorList& outputs, const TensorList& inputs, const CollectiveOptions& options,
                Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_to_all)) {
    return {};
  }
  Op op = start(self, OpKind::all_to_all, group, options.async_op, site);
  require_list(inputs, group, op.kind, "the input list");
  require_list(outputs, group, op.kind, "the output list");
  take_inputs(op, inputs);
  op.tensors.outputs = &outputs;
  return issue(self, op);
}

Work all_to_all_single(const Tensor& output, const Tensor& input, const CollectiveOptions& options,
                       Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_to_all_single)) {
    return {};
  }
  Op op = start(self, OpKind::all_to_all_single, group, options.async_op, site);
  take_input(op, input);
  require_elements(input.numel() == output.numel() && input.dtype() == output.dtype(), op.kind,
                   "input and output must have one size and dtype");
  require_elements(input.numel() % group.size() == 0, op.kind,
                   "Tensor's dim 0 does not divide equally across group size");
  op.tensors.output = output.storage();
  return issue(self, op);
}

Work barrier(const CollectiveOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::barrier)) {
    return {};
  }
  Op op = start(self, OpKind::barrier, group, options.async_op, site);
  op.device = self.device;
  return issue(self, op);
}

void compute(Duration duration) {
  const RankContext& self = this_rank();
  spend_step(self);
  self.backend->compute(duration);
}

void print(std::string_view text) { this_rank().backend->print(text); }

}  // namespace rollcall
