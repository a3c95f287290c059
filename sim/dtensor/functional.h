#pragma once

// Functional collectives (torch/distributed/_functional_collectives.py): they leave their input alone, and return a
// result that waits when it is first used.

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/work.h"
#include "sim/tensor/tensor.h"

namespace rollcall::functional {

// AsyncCollectiveTensor.
class AsyncTensor {
 public:
  AsyncTensor() = default;
  AsyncTensor(Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT: complete from the start
  AsyncTensor(Tensor tensor, Work work) : tensor_(std::move(tensor)), work_(work) {}

  // The first use: waits for the collective.
  const Tensor& wait() const;
  // The shape is known without waiting.
  const Shape& shape() const { return tensor_.shape(); }

 private:
  Tensor tensor_;
  mutable Work work_{};
};

AsyncTensor all_reduce(const Tensor& tensor, ReduceOp reduce, const ProcessGroup& group,
                       Site site = Site::here());
// The tensors of all members, one after the other along dimension 0. With another `gather_dim` they have to be put
// together, which is a first use.
AsyncTensor all_gather_single(const Tensor& tensor, int gather_dim, const ProcessGroup& group,
                              Site site = Site::here());
// Throws AssertionError unless the dimension is a multiple of the group's size.
AsyncTensor reduce_scatter_single(const Tensor& tensor, ReduceOp reduce, int scatter_dim,
                                  const ProcessGroup& group, Site site = Site::here());
// The splits are rows of dimension 0 for each member; empty: equal parts.
AsyncTensor all_to_all_single(const Tensor& tensor, const std::vector<std::int64_t>& output_split_sizes,
                              const std::vector<std::int64_t>& input_split_sizes, const ProcessGroup& group,
                              Site site = Site::here());
// destinations[r]: the member that member r sends its whole tensor to. The tensor has one dimension.
AsyncTensor permute_tensor(const Tensor& tensor, const std::vector<Rank>& destinations,
                           const ProcessGroup& group, Site site = Site::here());

}  // namespace rollcall::functional
