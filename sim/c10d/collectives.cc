#include "sim/c10d/collectives.h"

#include <algorithm>
#include <type_traits>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/arguments.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

const ProcessGroup& or_world(const RankContext& self, const ProcessGroup& group) {
  return group ? group : self.world;
}

// Out of line, like other rare paths: the frame of a function that waits is the first memory that a rank touches when
// it resumes.
[[gnu::cold, gnu::noinline]] void stand_outside(const ProcessGroup& group, OpKind kind) {
  if (!group) {
    detail::default_group();  // says that the world was destroyed
  }
  warn_not_in_group(name_in(this_rank().torch->release, kind));
  Observation observation{.kind = Observation::Kind::stood_outside};
  observation.op.kind = kind;
  observation.op.group = group.id();
  this_rank().backend->observer().observe(observation);
}

// torch warns and returns without communicating when the caller is not in the group
// (distributed_c10d.py, _warn_not_in_group).
[[gnu::always_inline]] inline bool outside(const ProcessGroup& group, OpKind kind) {
  if (group.is_member()) [[likely]] {
    return false;
  }
  stand_outside(group, kind);
  return true;
}

void count_shadow_call(const RankContext& self) {
  if (self.shadowing) [[unlikely]] {
    ++this_rank().shadow_calls;
  }
}

Op start(const RankContext& self, OpKind kind, const ProcessGroup& group, bool async_op, const Site& site) {
  count_shadow_call(self);
  Op op;
  op.kind = kind;
  op.async_op = async_op;
  op.shadow = self.shadowing;
  op.stream = self.stream;
  op.group = group.id();
  op.rank = group.rank();
  op.scope = self.scope;
  op.site = site;
  return op;
}

// As pairs of real numbers, complex ones can be added and averaged; other results would be garbage.
void check_complex_reduction(ReduceOp reduce) {
  if (reduce != ReduceOp::sum && reduce != ReduceOp::avg && reduce != ReduceOp::premul_sum) {
    refuse_use(fmt::format("all_reduce does not support {}.{} on complex tensors",
                           this_rank().torch->reduction_class, to_string(reduce)));
  }
}

[[gnu::noinline]] void take_complex(Op& op, const Tensor& tensor) {
  if (row_of(op.kind).as_real && has_reduce_op(op.kind)) {
    check_complex_reduction(op.reduce);
  }
  const bool as_real = row_of(op.kind).as_real;  // otherwise the backend sees a type that it does not support
  op.dtype = as_real ? tensor.storage()->dtype : tensor.dtype();
  op.numel = as_real ? 2 * tensor.numel() : tensor.numel();
}

struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double factor = 1;
};

template <typename Options>
Reduction reduction_of(const Options& options) {
  if constexpr (std::is_same_v<Options, ReduceOptions>) {
    return {options.op, options.factor};
  } else {
    return {};
  }
}

// The same for a call on a tensor. Every such call comes through here, so the Op is written once and not cleared first.
template <typename Options>
[[gnu::always_inline]] inline Op start_on(const Tensor& tensor, const RankContext& self, OpKind kind,
                                          const ProcessGroup& group, const Options& options,
                                          const Site& site) {
  count_shadow_call(self);
  Storage* const storage = tensor.storage();
  const Reduction reduction = reduction_of(options);
  const GroupId id = group.id();  // may raise, and after that nothing does: otherwise the Op is cleared first
  Op op{.kind = kind,
        .dtype = storage->dtype,
        .reduce = reduction.op,
        .async_op = options.async_op,
        .shadow = self.shadowing,
        .stream = self.stream,
        .device = storage->device,
        .group = id,
        .rank = group.rank(),
        .scope = self.scope,
        .numel = storage->numel,
        .site = site,
        .tensors = OpTensors(storage, reduction.factor)};
  if (storage->complex) [[unlikely]] {
    take_complex(op, tensor);
  }
  return op;
}

void take_reduction(Op& op, const ReduceOptions& options) {
  op.reduce = options.op;
  op.tensors.factor = options.factor;
}

bool all_of_one_size(const TensorList& tensors) {
  return std::ranges::all_of(tensors,
                             [&](const Tensor& tensor) { return tensor.numel() == tensors.front().numel(); });
}

// A list argument, all of one dtype. numel becomes the sum over the list.
void take_inputs(Op& op, const TensorList& tensors) {
  if (!tensors.empty()) {
    const Tensor& first = tensors.front();
    op.dtype = first.storage()->dtype;
    op.device = first.device();
    if (first.is_complex()) {
      take_complex(op, first);
    }
  }
  op.tensors.inputs = &tensors;
  op.numel = 0;
  for (const Tensor& tensor : tensors) {
    op.numel += tensor.is_complex() && row_of(op.kind).as_real ? 2 * tensor.numel() : tensor.numel();
  }
}

// Sets the root, as a rank of the group. The backend decides whether the rank exists.
void take_group_root(Op& op, const ProcessGroup& group, Rank root) {
  op.root = root;
  if (op.root < 0 || op.root >= group.size()) [[unlikely]] {
    op.malformed = true;
  }
}

void take_root(Op& op, const ProcessGroup& group, Rank global) {
  take_group_root(op, group, root_in(group, global, op.kind, op.site));
}

// A barrier on GPUs uses the first one that is named.
Device barrier_device(const RankContext& self, const std::vector<std::int16_t>& device_ids) {
  const BackendTraits& backend = self.backend->traits();
  if (backend.device == DeviceType::cpu && self.torch->gloo_barrier_takes_devices) {
    return self.device;  // a hint that Gloo ignores
  }
  if (!backend.barrier_takes_device) {
    throw RuntimeError(fmt::format("Function argument device_ids not supported for the selected backend {}",
                                   self.backend->name()));
  }
  return {DeviceType::cuda, device_ids.front()};
}

[[gnu::always_inline]] inline Work issue(const RankContext& self, const Op& op) {
  spend_step(self);
  if (op.async_op) {
    return self.backend->issue(op);
  }
  self.backend->call(op);
  return {};
}

// The same for operations whose lists and sizes the backend checks.
Work issue_checked(const RankContext& self, const ProcessGroup& group, Op& op) {
  op.malformed = !is_well_formed(op, group.size());
  return issue(self, op);
}

// TorchTraits::gloo_reduce_scatter_tensor_sums: the reduction never reaches Gloo, so different ones do not conflict.
void drop_reduction(const RankContext& self, Op& op) {
  const bool is_dropped =
      self.backend->traits().device == DeviceType::cpu && self.torch->gloo_reduce_scatter_tensor_sums;
  if (!is_dropped || op.reduce == ReduceOp::sum) {
    return;
  }
  warn(
      fmt::format("warning: on Gloo, reduce_scatter_tensor of PyTorch {} always sums and ignores ReduceOp.{}",
                  self.torch->name, to_string(op.reduce)));
  op.reduce = ReduceOp::sum;
  op.tensors.factor = 1;
}

}  // namespace

Rank get_rank(const ProcessGroup& group) {
  const ProcessGroup& world = detail::default_group();
  if (group && group.is_member()) {
    detail::check_registered(group);
  }
  return group ? group.rank() : world.rank();
}
Rank get_world_size(const ProcessGroup& group) { return (group ? group : detail::default_group()).size(); }
ProcessGroup world() { return this_rank().world; }
ProcessGroup find_group(std::string_view name) { return this_rank().backend->find_group(name); }

// Every function checks what distributed_c10d.py checks, in the same order: some checks come before, others after the
// check that the caller belongs to the group.

Work all_reduce(const Tensor& tensor, const ReduceOptions& options, Site site) {
  check_tensor(tensor, "tensor");
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_reduce)) {
    return {};
  }
  Op op = start_on(tensor, self, OpKind::all_reduce, group, options, site);
  return issue(self, op);
}

Work all_reduce_coalesced(const TensorList& tensors, const ReduceOptions& options, Site site) {
  if (this_rank().torch->all_reduce_coalesced_warns) {
    warn(
        "UserWarning: torch.distributed.all_reduce_coalesced will be deprecated. If you must use it, please "
        "revisit our documentation later at "
        "https://pytorch.org/docs/master/distributed.html#collective-functions");
  }
  check_tensor_list(tensors, "tensor");
  check_same_dtype(tensors);
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_reduce_coalesced)) {
    return {};
  }
  Op op = start(self, OpKind::all_reduce_coalesced, group, options.async_op, site);
  take_reduction(op, options);
  take_inputs(op, tensors);
  return issue_checked(self, group, op);
}

Work broadcast(const Tensor& tensor, Rank src, const CollectiveOptions& options, Site site) {
  check_tensor(tensor, "tensor");
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::broadcast)) {
    return {};
  }
  Op op = start_on(tensor, self, OpKind::broadcast, group, options, site);
  take_root(op, group, src);
  return issue(self, op);
}

Work broadcast_in_group(const Tensor& tensor, Rank group_src, const CollectiveOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  expects(group.rank() >= 0, "only members broadcast in a group");
  Op op = start_on(tensor, self, OpKind::broadcast, group, options, site);
  take_group_root(op, group, group_src);
  return issue(self, op);
}

Work reduce(const Tensor& tensor, Rank dst, const ReduceOptions& options, Site site) {
  check_tensor(tensor, "tensor");
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::reduce)) {
    return {};
  }
  Op op = start_on(tensor, self, OpKind::reduce, group, options, site);
  take_root(op, group, dst);
  return issue(self, op);
}

Work all_gather(const TensorList& outputs, const Tensor& tensor, const CollectiveOptions& options,
                Site site) {
  check_tensor_list(outputs, "tensor_list");
  check_tensor(tensor, "tensor");
  check_same_dtype(outputs, only(tensor));
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_gather)) {
    return {};
  }
  Op op = start_on(tensor, self, OpKind::all_gather, group, options, site);
  op.tensors.outputs = &outputs;
  op.uneven = !all_of_one_size(outputs);
  return issue_checked(self, group, op);
}

Work all_gather_flat(const Tensor& outputs, const Tensor& tensor, const CollectiveOptions& options,
                     Site site) {
  check_tensor(outputs, "tensor_list");
  check_tensor(tensor, "tensor");
  check_same_dtype(only(outputs), only(tensor));
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_gather)) {
    return {};
  }
  if (outputs.numel() != group.size() * tensor.numel()) {
    throw ValueError("all_gather needs as many places as the group has members, each as large as the tensor");
  }
  Op op = start_on(tensor, self, OpKind::all_gather, group, options, site);
  op.tensors.output = outputs.storage();
  return issue(self, op);
}

Work all_gather_into_tensor(const Tensor& output, const Tensor& input, const CollectiveOptions& options,
                            Site site) {
  check_tensor(input, "input_tensor");
  check_tensor(output, "output_tensor");
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_gather_into_tensor)) {
    return {};
  }
  Op op = start_on(input, self, OpKind::all_gather_into_tensor, group, options, site);
  op.tensors.output = output.storage();
  return issue_checked(self, group, op);
}

Work all_gather_single(const Tensor& output, const Tensor& input, const CollectiveOptions& options,
                       Site site) {
  require_function("all_gather_single");
  return all_gather_into_tensor(output, input, options, site);
}

Work gather(const Tensor& tensor, const TensorList& outputs, Rank dst, const CollectiveOptions& options,
            Site site) {
  check_tensor(tensor, "tensor");
  check_tensor_list(outputs, "gather_list");
  check_same_dtype(only(tensor), outputs);
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::gather)) {
    return {};
  }
  check_root_list(!outputs.empty(), dst == self.rank, "gather_list", "destination");
  Op op = start_on(tensor, self, OpKind::gather, group, options, site);
  op.root = root_in(group, dst, op.kind, site);
  if (!outputs.empty()) {
    op.tensors.outputs = &outputs;
  }
  return issue_checked(self, group, op);
}

Work gather_single(const Tensor& tensor, const Tensor& output, Rank dst, const CollectiveOptions& options,
                   Site site) {
  require_function("gather_single");
  check_tensor(tensor, "tensor");
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::gather_single)) {
    return {};
  }
  const Rank root = root_in(group, dst, OpKind::gather_single, site);
  const bool is_root = root == group.rank();
  if (is_root && !output) {
    throw ValueError("gather_tensor must be specified on the destination rank");
  }
  if (is_root) {
    check_same_dtype(only(tensor), only(output));
  }
  Op op = start_on(tensor, self, OpKind::gather_single, group, options, site);
  op.root = root;
  op.tensors.output = is_root ? output.storage() : nullptr;
  return issue_checked(self, group, op);
}

Work scatter(const Tensor& tensor, const TensorList& inputs, Rank src, const CollectiveOptions& options,
             Site site) {
  check_tensor(tensor, "tensor");
  check_tensor_list(inputs, "scatter_list");
  check_same_dtype(only(tensor), inputs);
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::scatter)) {
    return {};
  }
  check_root_list(!inputs.empty(), src == self.rank, "scatter_list", "source");
  Op op = start_on(tensor, self, OpKind::scatter, group, options, site);
  op.tensors.input = nullptr;
  op.tensors.output = tensor.storage();
  op.root = root_in(group, src, op.kind, site);
  if (!inputs.empty()) {
    op.tensors.inputs = &inputs;
  }
  return issue_checked(self, group, op);
}

Work reduce_scatter(const Tensor& output, const TensorList& inputs, const ReduceOptions& options, Site site) {
  check_tensor(output, "output");
  check_tensor_list(inputs, "input_list");
  check_same_dtype(only(output), inputs);
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::reduce_scatter)) {
    return {};
  }
  Op op = start(self, OpKind::reduce_scatter, group, options.async_op, site);
  take_inputs(op, inputs);
  op.dtype = output.dtype();
  op.device = output.device();
  op.tensors.output = output.storage();
  op.uneven = !all_of_one_size(inputs);
  take_reduction(op, options);
  return issue_checked(self, group, op);
}

Work reduce_scatter_tensor(const Tensor& output, const Tensor& input, const ReduceOptions& options,
                           Site site) {
  check_tensor(output, "output");
  check_tensor(input, "input");
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::reduce_scatter_tensor)) {
    return {};
  }
  Op op = start_on(input, self, OpKind::reduce_scatter_tensor, group, options, site);
  drop_reduction(self, op);
  op.tensors.output = output.storage();
  return issue_checked(self, group, op);
}

Work reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOptions& options,
                           Site site) {
  require_function("reduce_scatter_single");
  return reduce_scatter_tensor(output, input, options, site);
}

Work all_to_all(const TensorList& outputs, const TensorList& inputs, const CollectiveOptions& options,
                Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_to_all)) {
    return {};
  }
  check_tensor_list(outputs, "output_tensor_list");
  check_tensor_list(inputs, "input_tensor_list");
  check_same_dtype(outputs, inputs);
  Op op = start(self, OpKind::all_to_all, group, options.async_op, site);
  take_inputs(op, inputs);
  op.tensors.outputs = &outputs;
  op.uneven = true;  // each member decides how much it sends to each other member
  return issue_checked(self, group, op);
}

Work all_to_all_single(const Tensor& output, const Tensor& input, const AllToAllOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::all_to_all_single)) {
    return {};
  }
  check_tensor(output, "output");
  check_tensor(input, "input");
  check_same_dtype(only(output), only(input));
  Op op = start_on(input, self, OpKind::all_to_all_single, group, options, site);
  op.tensors.output = output.storage();
  const SplitSizes splits{options.output_split_sizes, options.input_split_sizes};
  if (!splits.output.empty() || !splits.input.empty()) {
    op.tensors.splits = &splits;
    op.uneven = true;
  }
  return issue_checked(self, group, op);
}

Work barrier(const BarrierOptions& options, Site site) {
  const RankContext& self = this_rank();
  const ProcessGroup& group = or_world(self, options.group);
  if (outside(group, OpKind::barrier)) {
    return {};
  }
  Op op = start(self, OpKind::barrier, group, options.async_op, site);
  op.device = self.device;
  if (!options.device_ids.empty()) [[unlikely]] {
    op.device = barrier_device(self, options.device_ids);
  }
  return issue(self, op);
}

namespace {

using Call = Work (*)(const CollectiveArguments& arguments, Site site);

CollectiveOptions options_of(const CollectiveArguments& a) { return {a.options.group, a.options.async_op}; }

// A function for each kind, because a waiting rank has the whole frame of its caller on its stack.
Call call_of(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return [](const CollectiveArguments& a, Site site) { return all_reduce(*a.input, a.options, site); };
    case OpKind::all_reduce_coalesced:
      return [](const CollectiveArguments& a, Site site) {
        return all_reduce_coalesced(*a.inputs, a.options, site);
      };
    case OpKind::broadcast:
      return [](const CollectiveArguments& a, Site site) {
        return broadcast(*a.input, a.root, options_of(a), site);
      };
    case OpKind::reduce:
      return
          [](const CollectiveArguments& a, Site site) { return reduce(*a.input, a.root, a.options, site); };
    case OpKind::all_gather:
      return [](const CollectiveArguments& a, Site site) {
        return all_gather(*a.outputs, *a.input, options_of(a), site);
      };
    case OpKind::all_gather_into_tensor:
      return [](const CollectiveArguments& a, Site site) {
        return all_gather_into_tensor(*a.output, *a.input, options_of(a), site);
      };
    case OpKind::gather:
      return [](const CollectiveArguments& a, Site site) {
        return gather(*a.input, *a.outputs, a.root, options_of(a), site);
      };
    case OpKind::gather_single:
      return [](const CollectiveArguments& a, Site site) {
        return gather_single(*a.input, a.output == nullptr ? Tensor() : *a.output, a.root, options_of(a),
                             site);
      };
    case OpKind::scatter:
      return [](const CollectiveArguments& a, Site site) {
        return scatter(*a.output, *a.inputs, a.root, options_of(a), site);
      };
    case OpKind::reduce_scatter:
      return [](const CollectiveArguments& a, Site site) {
        return reduce_scatter(*a.output, *a.inputs, a.options, site);
      };
    case OpKind::reduce_scatter_tensor:
      return [](const CollectiveArguments& a, Site site) {
        return reduce_scatter_tensor(*a.output, *a.input, a.options, site);
      };
    case OpKind::all_to_all:
      return [](const CollectiveArguments& a, Site site) {
        return all_to_all(*a.outputs, *a.inputs, options_of(a), site);
      };
    case OpKind::all_to_all_single:
      return [](const CollectiveArguments& a, Site site) {
        AllToAllOptions parts{.group = a.options.group, .async_op = a.options.async_op};
        if (a.splits != nullptr) {
          parts.output_split_sizes = a.splits->output;
          parts.input_split_sizes = a.splits->input;
        }
        return all_to_all_single(*a.output, *a.input, parts, site);
      };
    case OpKind::barrier:
      return [](const CollectiveArguments& a, Site site) {
        return barrier({a.options.group, a.options.async_op, {a.device_ids.begin(), a.device_ids.end()}},
                       site);
      };
    default:
      expects(false, "only collectives are called by their kind");
      return nullptr;
  }
}

}  // namespace

Work call_collective(OpKind kind, const CollectiveArguments& a, Site site) { return call_of(kind)(a, site); }

void compute(Duration duration) {
  const RankContext& self = this_rank();
  spend_step(self);
  self.backend->compute(duration);
}

void print(std::string_view text) { this_rank().backend->observer().print(text); }

}  // namespace rollcall
