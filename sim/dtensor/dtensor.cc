#include "sim/dtensor/dtensor.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/groups.h"
#include "sim/dtensor/redistribute.h"
#include "sim/dtensor/tensor_parts.h"

namespace rollcall {
namespace {

Placements normalized_all(Placements placements, const Shape& shape, const DeviceMesh& mesh) {
  if (placements.size() != mesh.ndim()) {
    throw ValueError(fmt::format(
        "`placements` must have the same length as `device_mesh.ndim`! Found placements length: {}, and "
        "device_mesh.ndim: {}.",
        placements.size(), mesh.ndim()));
  }
  for (Placement& placement : placements) {
    placement = normalized(placement, shape.sizes().size());
  }
  return placements;
}

// Shard._shard_tensor: parts of one size, which the first rank of the dimension scatters.
Tensor scatter_shards(const Tensor& tensor, int dim, const DeviceMesh& mesh, std::size_t mesh_dim,
                      Site site) {
  const ProcessGroup& group = mesh.get_group(mesh_dim);
  const std::int64_t size = detail::size_at(tensor.shape(), dim);
  const std::int64_t members = mesh.size(mesh_dim);
  const std::int64_t part = detail::largest_chunk(size, members);
  TensorList parts;
  for (std::int64_t member = 0; group.rank() == 0 && member < members; ++member) {
    const detail::Chunk chunk = detail::chunk_of(size, members, member);
    parts.push_back(detail::padded_to(detail::narrow(tensor, dim, chunk.start, chunk.length), dim, part));
  }
  const Tensor own =
      Tensor::zeros(detail::with_size(tensor.shape(), dim, part), tensor.dtype(), tensor.device());
  scatter(own, parts, get_global_rank(group, 0), {.group = group}, site);
  return detail::narrow(own, dim, 0, detail::chunk_of(size, members, group.rank()).length);
}

}  // namespace

DTensor DTensor::from_local(Tensor local, DeviceMesh mesh, Placements placements,
                            const std::optional<Shape>& shape) {
  Shape whole = local.shape();
  placements = normalized_all(std::move(placements), whole, mesh);
  for (std::size_t dim = 0; dim < placements.size(); ++dim) {
    if (placements[dim].is_shard()) {
      const int of = placements[dim].dim;
      whole = detail::with_size(whole, of, detail::size_at(whole, of) * mesh.size(dim));
    }
  }
  return {std::move(local), shape.value_or(whole), std::move(mesh), std::move(placements)};
}

DTensor DTensor::moved_to(Placements placements, Site site) const {
  functional::AsyncTensor moved =
      detail::redistribute_local(local_, shape_, mesh_, placements_, placements, site);
  return {std::move(moved), shape_, mesh_, std::move(placements)};
}

DTensor DTensor::redistribute(Placements placements, bool async_op, Site site) const {
  placements = normalized_all(std::move(placements), shape_, mesh_);
  for (std::size_t dim = 0; dim < placements.size(); ++dim) {
    const bool is_possible =
        !placements[dim].is_partial() || placements_[dim].is_shard() || placements_[dim] == placements[dim];
    if (!is_possible) {
      throw RuntimeError(fmt::format(
          "Can not redistribute from {} to {}, only Shard to Partial(sum) redistribution is supported!",
          to_string(placements_[dim]), to_string(placements[dim])));
    }
  }
  DTensor moved = moved_to(std::move(placements), site);
  if (!async_op) {
    moved.local_.wait();
  }
  return moved;
}

DTensor DTensor::redistribute_backward(const Placements& placements, Site site) const {
  Placements target = placements;
  for (std::size_t dim = 0; dim < target.size(); ++dim) {
    if (target[dim].is_partial() && !placements_[dim].is_partial()) {
      target[dim] = Replicate();
    }
  }
  return moved_to(std::move(target), site);
}

Tensor DTensor::full_tensor(Site site) const {
  return moved_to(Placements(placements_.size(), Replicate()), site).to_local();
}

DTensor distribute_tensor(const Tensor& tensor, const DeviceMesh& mesh, Placements placements, Site site) {
  placements = normalized_all(std::move(placements), tensor.shape(), mesh);
  Tensor local = tensor;
  for (std::size_t dim = 0; dim < placements.size(); ++dim) {
    if (placements[dim].is_partial()) {
      throw RuntimeError("distribute_tensor does not make partial tensors here");
    }
    if (placements[dim].is_shard()) {
      local = scatter_shards(local, placements[dim].dim, mesh, dim, site);
    } else {
      local = local.clone();
      broadcast(local, get_global_rank(mesh.get_group(dim), 0), {.group = mesh.get_group(dim)}, site);
    }
  }
  return {std::move(local), tensor.shape(), mesh, std::move(placements)};
}

}  // namespace rollcall
