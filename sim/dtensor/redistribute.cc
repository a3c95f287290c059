#include "sim/dtensor/redistribute.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "sim/dtensor/tensor_parts.h"
#include "sim/train/flat.h"

namespace rollcall::detail {
namespace {

// The shape of the tensor that each dimension of the mesh splits: what the dimensions before it have left.
std::vector<Shape> logical_shapes(const Shape& shape, const DeviceMesh& mesh, const Placements& placements) {
  const std::vector<Rank> coordinate = mesh.get_coordinate();
  std::vector<Shape> shapes{shape};
  for (std::size_t dim = 0; dim + 1 < placements.size(); ++dim) {
    shapes.push_back(shapes.back());
    if (placements[dim].is_shard()) {
      const Chunk chunk =
          chunk_of(size_at(shapes[dim], placements[dim].dim), mesh.size(dim), coordinate[dim]);
      shapes.back() = with_size(shapes[dim], placements[dim].dim, chunk.length);
    }
  }
  return shapes;
}

// The dimensions of the mesh before `end` that shard dimension `tensor_dim`.
MeshShape::Dims shards_before(const Placements& placements, int tensor_dim, std::size_t end) {
  MeshShape::Dims dims;
  for (std::size_t dim = 0; dim < end; ++dim) {
    if (placements[dim].is_shard(tensor_dim)) {
      dims.push_back(dim);
    }
  }
  return dims;
}

// generate_greedy_transform_infos: first from the innermost dimension outwards, where a shard that is nested
// differently in the target becomes whole first; then the rest from the outermost inwards.
std::vector<Transform> greedy_plan(const Shape& shape, const DeviceMesh& mesh, const Placements& from,
                                   const Placements& to) {
  const std::vector<Shape> shapes = logical_shapes(shape, mesh, from);
  Placements now = from;
  std::vector<Transform> plan;
  const auto change = [&](std::size_t dim, const Placement& target) {
    if (now[dim] != target) {
      plan.push_back({{dim}, now[dim], target, shapes[dim]});
      now[dim] = target;
    }
  };
  const bool has_shards = std::ranges::any_of(from, [](const Placement& p) { return p.is_shard(); });
  for (std::size_t dim = from.size(); from.size() > 1 && has_shards && dim-- > 0;) {
    const bool nests_otherwise =
        to[dim].is_shard() && shards_before(now, to[dim].dim, dim) != shards_before(to, to[dim].dim, dim);
    change(dim, nests_otherwise ? Replicate() : to[dim]);
  }
  for (std::size_t dim = 0; dim < from.size(); ++dim) {
    change(dim, to[dim]);
  }
  return plan;
}

enum class Communication : std::uint8_t { none, all_reduce, reduce_scatter, all_gather, all_to_all };

Communication communication_of(const Transform& transform) {
  if (transform.from.is_partial()) {
    return transform.to.is_replicate() ? Communication::all_reduce
           : transform.to.is_shard()   ? Communication::reduce_scatter
                                       : Communication::none;
  }
  if (transform.from.is_shard()) {
    return transform.to.is_replicate() ? Communication::all_gather
           : transform.to.is_shard()   ? Communication::all_to_all
                                       : Communication::none;
  }
  return Communication::none;
}

bool is_mergeable(Communication communication) {
  return communication == Communication::all_reduce || communication == Communication::reduce_scatter ||
         communication == Communication::all_gather;
}

// try_create_flattened: several steps of one kind as one, on a flattened dimension of the mesh.
std::optional<Transform> merged(const std::vector<Transform>& steps, const DeviceMesh& mesh) {
  MeshShape::Dims dims;
  for (const Transform& step : steps) {
    dims.push_back(step.mesh_dims.front());
  }
  const Communication communication = communication_of(steps.front());
  const bool ascends = std::ranges::is_sorted(dims);
  std::ranges::sort(dims);
  const bool descends = std::ranges::equal(steps, dims | std::views::reverse, {},
                                           [](const Transform& step) { return step.mesh_dims.front(); });
  const bool is_ordered = communication == Communication::reduce_scatter ? ascends
                          : communication == Communication::all_gather   ? descends
                                                                         : true;
  if (steps.size() < 2 || !is_ordered || !mesh.find_flattened(dims)) {
    return std::nullopt;
  }
  Transform one{dims, steps.front().from, steps.front().to, steps.front().logical_shape};
  if (communication == Communication::all_reduce) {
    return one;
  }
  // The outermost step has the whole tensor that they split.
  const int affected = communication == Communication::all_gather ? one.from.dim : one.to.dim;
  std::int64_t members = 1;
  for (const Transform& step : steps) {
    members *= mesh.size(step.mesh_dims.front());
    if (size_at(step.logical_shape, affected) > size_at(one.logical_shape, affected)) {
      one.logical_shape = step.logical_shape;
    }
  }
  const bool is_uneven = size_at(one.logical_shape, affected) % members != 0;
  return communication == Communication::reduce_scatter && is_uneven ? std::nullopt : std::optional(one);
}

std::vector<Transform> with_merged_steps(const std::vector<Transform>& plan, const DeviceMesh& mesh) {
  std::vector<Transform> result;
  for (std::size_t begin = 0; begin < plan.size();) {
    std::size_t end = begin + 1;
    while (is_mergeable(communication_of(plan[begin])) && end < plan.size() &&
           plan[end].from == plan[begin].from && plan[end].to == plan[begin].to) {
      ++end;
    }
    const std::vector<Transform> steps(plan.begin() + static_cast<std::ptrdiff_t>(begin),
                                       plan.begin() + static_cast<std::ptrdiff_t>(end));
    if (const auto one = merged(steps, mesh)) {
      result.push_back(*one);
    } else {
      result.insert(result.end(), steps.begin(), steps.end());
    }
    begin = end;
  }
  return result;
}

// What one step works on: its group, and the calling rank's place in it.
struct Place {
  ProcessGroup group;
  std::int64_t members = 1;
  std::int64_t index = 0;
};

Place place_of(const Transform& step, const DeviceMesh& mesh) {
  if (step.mesh_dims.size() == 1) {
    const std::size_t dim = step.mesh_dims.front();
    return {mesh.get_group(dim), mesh.size(dim), mesh.get_coordinate()[dim]};
  }
  const std::optional<DeviceMesh> flattened = mesh.find_flattened(step.mesh_dims);
  return {flattened->get_group(), flattened->size(), flattened->get_coordinate().front()};
}

// Shard._to_replicate_tensor: in transit, all shards are as large as the largest.
functional::AsyncTensor gather_shards(const Tensor& local, const Transform& step, const Place& place,
                                      Site site) {
  const int dim = step.from.dim;
  const std::int64_t size = size_at(step.logical_shape, dim);
  const Tensor padded = padded_to(local, dim, largest_chunk(size, place.members));
  functional::AsyncTensor whole = functional::all_gather_single(padded, dim, place.group, site);
  return size % place.members == 0 ? whole : narrow(whole.wait(), dim, 0, size);
}

// Shard._reduce_shard_tensor.
functional::AsyncTensor reduce_to_shards(const Tensor& local, const Transform& step, const Place& place,
                                         Site site) {
  const int dim = step.to.dim;
  const std::int64_t size = size_at(local.shape(), dim);
  const std::int64_t chunk = largest_chunk(size, place.members);
  functional::AsyncTensor shard = functional::reduce_scatter_single(
      padded_to(local, dim, chunk * place.members), step.from.reduce, dim, place.group, site);
  return size % place.members == 0
             ? shard
             : narrow(shard.wait(), dim, 0, chunk_of(size, place.members, place.index).length);
}

// shard_dim_alltoall: each member's part of every shard. Tensors on the CPU are gathered instead.
Tensor exchange_shards(const Tensor& local, int from, int to, const Place& place, Site site) {
  const std::int64_t part = size_at(local.shape(), to) / place.members;
  if (local.device().type == DeviceType::cpu) {
    const functional::AsyncTensor whole = functional::all_gather_single(local, from, place.group, site);
    return narrow(whole.wait(), to, place.index * part, part);
  }
  TensorList outgoing;
  for (std::int64_t member = 0; member < place.members; ++member) {
    const Tensor piece = narrow(local, to, member * part, part);
    outgoing.push_back(rollcall::slice(piece, 0, Shape{piece.numel()}));
  }
  const functional::AsyncTensor incoming =
      functional::all_to_all_single(concatenate(outgoing, 0), {}, {}, place.group, site);
  const Shape piece = with_size(local.shape(), to, part);
  TensorList pieces;
  for (std::int64_t member = 0; member < place.members; ++member) {
    pieces.push_back(rollcall::slice(incoming.wait(), member * piece.numel(), piece));
  }
  return concatenate(pieces, from);
}

// Shard._to_new_shard_dim.
Tensor move_shards(const Tensor& local, const Transform& step, const Place& place, Site site) {
  const int from = step.from.dim;
  const int to = step.to.dim;
  const std::int64_t from_size = size_at(step.logical_shape, from);
  const std::int64_t to_size = size_at(step.logical_shape, to);
  Tensor padded = padded_to(local, from, largest_chunk(from_size, place.members));
  padded = padded_to(padded, to, largest_chunk(to_size, place.members) * place.members);
  const Tensor moved = exchange_shards(padded, from, to, place, site);
  return narrow(narrow(moved, from, 0, from_size), to, 0,
                chunk_of(to_size, place.members, place.index).length);
}

Tensor take_shard(const Tensor& local, int dim, const Place& place) {
  const Chunk chunk = chunk_of(size_at(local.shape(), dim), place.members, place.index);
  return narrow(local, dim, chunk.start, chunk.length);
}

// Shard._to_partial_tensor: the shard in its place, and zeros around it.
Tensor embed_shard(const Tensor& local, const Transform& step, const Place& place) {
  const int dim = step.from.dim;
  const std::int64_t size = size_at(step.logical_shape, dim);
  const Chunk chunk = chunk_of(size, place.members, place.index);
  const auto zeros = [&](std::int64_t length) {
    return Tensor::zeros(with_size(local.shape(), dim, length), local.dtype(), local.device());
  };
  return concatenate({zeros(chunk.start), local, zeros(size - chunk.start - chunk.length)}, dim);
}

functional::AsyncTensor apply(const Tensor& local, const Transform& step, const Place& place, Site site) {
  switch (communication_of(step)) {
    case Communication::all_reduce:
      return functional::all_reduce(local, step.from.reduce, place.group, site);
    case Communication::reduce_scatter:
      return reduce_to_shards(local, step, place, site);
    case Communication::all_gather:
      return gather_shards(local, step, place, site);
    case Communication::all_to_all:
      return move_shards(local, step, place, site);
    case Communication::none:
      break;
  }
  if (step.to.is_shard()) {
    return take_shard(local, step.to.dim, place);
  }
  if (step.from.is_shard()) {
    return embed_shard(local, step, place);
  }
  return local.clone().mul_(1.0 / static_cast<double>(place.members));  // Replicate to Partial
}

}  // namespace

std::vector<Transform> plan_redistribution(const Shape& shape, const DeviceMesh& mesh, const Placements& from,
                                           const Placements& to) {
  return with_merged_steps(greedy_plan(shape, mesh, from, to), mesh);
}

functional::AsyncTensor redistribute_local(const functional::AsyncTensor& local, const Shape& shape,
                                           const DeviceMesh& mesh, const Placements& from,
                                           const Placements& to, Site site) {
  if (mesh.get_coordinate().empty()) {
    return local;  // a rank outside the mesh has no part of it
  }
  functional::AsyncTensor now = local;
  for (const Transform& step : plan_redistribution(shape, mesh, from, to)) {
    const Place place = place_of(step, mesh);
    if (place.members > 1) {
      now = apply(now.wait(), step, place, site);
    }
  }
  return now;
}

}  // namespace rollcall::detail
