#pragma once

// torch.distributed's functions, for the current rank. Names, defaults and argument meaning are torch's
// (torch/distributed/distributed_c10d.py): the group defaults to the world, src and dst are *global* ranks, and a call
// on a group the caller does not belong to warns and does nothing.
//
// Every function blocks until the collective is done unless async_op is set; then the returned Work
// must be waited for before the tensors are read.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/work.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

struct CollectiveOptions {
  ProcessGroup group{};
  bool async_op = false;
};

struct ReduceOptions {
  ReduceOp op = ReduceOp::sum;
  ProcessGroup group{};
  bool async_op = false;
  double factor = 1;  // with ReduceOp::premul_sum: torch.distributed._make_nccl_premul_sum(factor)
};

struct AllToAllOptions {
  // Rows of output and input for each member; empty: equal parts.
  std::vector<std::int64_t> output_split_sizes{};
  std::vector<std::int64_t> input_split_sizes{};
  ProcessGroup group{};
  bool async_op = false;
};

struct BarrierOptions {
  ProcessGroup group{};
  bool async_op = false;
  std::vector<std::int16_t> device_ids{};  // the GPU to use; only with NCCL
};

Rank get_rank(const ProcessGroup& group = {});        // -1 for a non-member
Rank get_world_size(const ProcessGroup& group = {});  // -1 for a non-member
ProcessGroup world();
ProcessGroup find_group(std::string_view name);

// tensor: reduced in place, same shape and dtype on every rank.
Work all_reduce(const Tensor& tensor, const ReduceOptions& options = {}, Site site = Site::here());
// tensors: each reduced in place, as one operation. torch warns that it will be deprecated.
Work all_reduce_coalesced(const TensorList& tensors, const ReduceOptions& options = {},
                          Site site = Site::here());
// tensor: sent by global rank `src`, overwritten on the others.
Work broadcast(const Tensor& tensor, Rank src, const CollectiveOptions& options = {},
               Site site = Site::here());
// The same from C++ (ProcessGroup::broadcast), with the source as a rank of the group. The backend refuses one that is
// not in the group.
Work broadcast_in_group(const Tensor& tensor, Rank group_src, const CollectiveOptions& options, Site site);
// tensor: reduced into global rank `dst`'s tensor. The others' contents are undefined afterwards.
Work reduce(const Tensor& tensor, Rank dst, const ReduceOptions& options = {}, Site site = Site::here());
// outputs: world_size tensors of tensor's shape; outputs[r] receives group rank r's tensor. With NCCL, members may give
// tensors of different sizes if every list has matching places.
Work all_gather(const TensorList& outputs, const Tensor& tensor, const CollectiveOptions& options = {},
                Site site = Site::here());
// The same operation, with the world_size places end to end in one tensor (ValueError unless they fit). Costs one
// number per rank, not world_size, when all ranks give the same value.
Work all_gather_flat(const Tensor& outputs, const Tensor& tensor, const CollectiveOptions& options = {},
                     Site site = Site::here());
// output: world_size * input.numel() elements, in group-rank order.
Work all_gather_into_tensor(const Tensor& output, const Tensor& input, const CollectiveOptions& options = {},
                            Site site = Site::here());
// torch 2.14's name for it. Throws AttributeError in earlier releases.
Work all_gather_single(const Tensor& output, const Tensor& input, const CollectiveOptions& options = {},
                       Site site = Site::here());
// outputs: world_size tensors on `dst`, empty elsewhere.
Work gather(const Tensor& tensor, const TensorList& outputs, Rank dst, const CollectiveOptions& options = {},
            Site site = Site::here());
// output: world_size * tensor.numel() elements on `dst`, none elsewhere. New in torch 2.14, on NCCL; throws
// AttributeError in earlier releases.
Work gather_single(const Tensor& tensor, const Tensor& output, Rank dst,
                   const CollectiveOptions& options = {}, Site site = Site::here());
// inputs: world_size tensors on `src`, empty elsewhere; each rank receives one in `tensor`.
Work scatter(const Tensor& tensor, const TensorList& inputs, Rank src, const CollectiveOptions& options = {},
             Site site = Site::here());
// inputs: world_size tensors; output receives the reduction of all ranks' inputs[own rank].
Work reduce_scatter(const Tensor& output, const TensorList& inputs, const ReduceOptions& options = {},
                    Site site = Site::here());
// input: world_size * output.numel() elements.
Work reduce_scatter_tensor(const Tensor& output, const Tensor& input, const ReduceOptions& options = {},
                           Site site = Site::here());
// torch 2.14's name for it. Throws AttributeError in earlier releases.
Work reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOptions& options = {},
                           Site site = Site::here());
// inputs[r] goes to group rank r; outputs[r] comes from it.
Work all_to_all(const TensorList& outputs, const TensorList& inputs, const CollectiveOptions& options = {},
                Site site = Site::here());
// input and output: world_size parts along the first dimension, in group-rank order.
Work all_to_all_single(const Tensor& output, const Tensor& input, const AllToAllOptions& options = {},
                       Site site = Site::here());
Work barrier(const BarrierOptions& options = {}, Site site = Site::here());

// The arguments of a collective that is known only by its kind, as in programs read from files. The operation uses
// those that its row names and ignores the others. All are borrowed for the call.
struct CollectiveArguments {
  const Tensor* input = nullptr;
  const Tensor* output = nullptr;
  const TensorList* inputs = nullptr;
  const TensorList* outputs = nullptr;
  Rank root = 0;  // global
  ReduceOptions options{};
  const SplitSizes* splits = nullptr;
  std::span<const std::int16_t> device_ids{};  // of a barrier
};
// Calls the function above for `kind`.
Work call_collective(OpKind kind, const CollectiveArguments& arguments, Site site = Site::here());

// The rank computes for `duration` nanoseconds of simulated time.
void compute(Duration duration);
// Prints a line to the run's output, which is kept per rank and in order.
void print(std::string_view text);

}  // namespace rollcall
