#include "sim/dtensor/functional.h"

#include <numeric>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/dtensor/tensor_parts.h"

namespace rollcall::functional {
namespace {

// Equal parts along one dimension, put together along another.
Tensor regrouped(const Tensor& tensor, int from, int to, std::int64_t parts) {
  const std::int64_t size = detail::size_at(tensor.shape(), from) / parts;
  TensorList pieces;
  for (std::int64_t part = 0; part < parts; ++part) {
    pieces.push_back(detail::narrow(tensor, from, part * size, size));
  }
  return detail::concatenate(pieces, to);
}

}  // namespace

const Tensor& AsyncTensor::wait() const {
  if (!work_.is_nothing()) {
    std::exchange(work_, Work()).wait();
  }
  return tensor_;
}

AsyncTensor all_reduce(const Tensor& tensor, ReduceOp reduce, const ProcessGroup& group, Site site) {
  Tensor result = tensor.clone();
  const Work work = rollcall::all_reduce(result, {.op = reduce, .group = group, .async_op = true}, site);
  return {std::move(result), work};
}

AsyncTensor all_gather_single(const Tensor& tensor, int gather_dim, const ProcessGroup& group, Site site) {
  const std::int64_t members = group.size();
  const std::int64_t first = detail::size_at(tensor.shape(), 0);
  Tensor result =
      Tensor::zeros(detail::with_size(tensor.shape(), 0, first * members), tensor.dtype(), tensor.device());
  const Work work = all_gather_into_tensor(result, tensor, {.group = group, .async_op = true}, site);
  AsyncTensor gathered(result, work);
  return gather_dim == 0 ? gathered : regrouped(gathered.wait(), 0, gather_dim, members);
}

AsyncTensor reduce_scatter_single(const Tensor& tensor, ReduceOp reduce, int scatter_dim,
                                  const ProcessGroup& group, Site site) {
  const std::int64_t members = group.size();
  const std::int64_t size = detail::size_at(tensor.shape(), scatter_dim);
  if (size % members != 0) {
    throw Error("AssertionError", fmt::format("input dimension 0 ({} must be a multiple of group_size {}",
                                              detail::size_at(tensor.shape(), 0), members));
  }
  const Tensor input = scatter_dim == 0 ? tensor : regrouped(tensor, scatter_dim, 0, members);
  Tensor result = Tensor::zeros(detail::with_size(tensor.shape(), scatter_dim, size / members),
                                tensor.dtype(), tensor.device());
  const Work work =
      reduce_scatter_tensor(result, input, {.op = reduce, .group = group, .async_op = true}, site);
  return {std::move(result), work};
}

AsyncTensor all_to_all_single(const Tensor& tensor, const std::vector<std::int64_t>& output_split_sizes,
                              const std::vector<std::int64_t>& input_split_sizes, const ProcessGroup& group,
                              Site site) {
  const std::int64_t rows =
      output_split_sizes.empty()
          ? detail::size_at(tensor.shape(), 0)
          : std::accumulate(output_split_sizes.begin(), output_split_sizes.end(), std::int64_t{0});
  Tensor result = Tensor::zeros(detail::with_size(tensor.shape(), 0, rows), tensor.dtype(), tensor.device());
  const Work work = rollcall::all_to_all_single(result, tensor,
                                                {.output_split_sizes = output_split_sizes,
                                                 .input_split_sizes = input_split_sizes,
                                                 .group = group,
                                                 .async_op = true},
                                                site);
  return {std::move(result), work};
}

AsyncTensor permute_tensor(const Tensor& tensor, const std::vector<Rank>& destinations,
                           const ProcessGroup& group, Site site) {
  std::vector<std::int64_t> output(destinations.size());
  std::vector<std::int64_t> input(destinations.size());
  for (std::size_t source = 0; source < destinations.size(); ++source) {
    if (static_cast<Rank>(source) == group.rank()) {
      input[static_cast<std::size_t>(destinations[source])] = tensor.numel();
    }
    if (destinations[source] == group.rank()) {
      output[source] = tensor.numel();
    }
  }
  return functional::all_to_all_single(tensor, output, input, group, site);
}

}  // namespace rollcall::functional
