#include "sim/c10d/device_mesh.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"

namespace rollcall {

Rank MeshShape::size() const {
  return std::accumulate(sizes.begin(), sizes.end(), Rank{1}, std::multiplies<>());
}

std::vector<Rank> MeshShape::coordinate_of(Rank rank) const {
  if (rank >= size()) {
    return {};
  }
  std::vector<Rank> coordinate(sizes.size());
  for (std::size_t dim = sizes.size(); dim-- > 0;) {
    coordinate[dim] = rank % sizes[dim];
    rank /= sizes[dim];
  }
  return coordinate;
}

std::vector<RankList> MeshShape::groups_along(std::size_t dim) const {
  std::vector<RankList> groups(static_cast<std::size_t>(size() / sizes[dim]));
  for (Rank rank = 0; rank < size(); ++rank) {
    groups[static_cast<std::size_t>(row_of(dim, rank))].push_back(rank);
  }
  return groups;
}

// mesh.swapdims(-1, dim) flattened: rows are ordered by the other dimensions, the last of which stands where
// `dim` was.
Rank MeshShape::row_of(std::size_t dim, Rank rank) const {
  const std::vector<Rank> place = coordinate_of(rank);
  const std::size_t last = sizes.size() - 1;
  Rank row = 0;
  for (std::size_t i = 0; i < last; ++i) {
    const std::size_t at = i == dim ? last : i;
    row = row * sizes[at] + place[at];
  }
  return row;
}

const ProcessGroup& DeviceMesh::get_group(const std::string& dim_name) const {
  const auto found = std::ranges::find(shape_.dim_names, dim_name);
  if (found == shape_.dim_names.end()) {
    throw Error("KeyError", fmt::format("Invalid mesh_dim_name {}. Valid mesh_dim_names are {}.", dim_name,
                                        fmt::join(shape_.dim_names, ", ")));
  }
  return groups_[static_cast<std::size_t>(found - shape_.dim_names.begin())];
}

std::vector<Rank> DeviceMesh::get_coordinate() const { return shape_.coordinate_of(get_rank()); }

DeviceMesh init_device_mesh(const MeshShape& shape, Site site) {
  const Rank world_size = detail::default_group().size();
  if (shape.sizes.size() != shape.dim_names.size()) {
    throw RuntimeError("mesh_shape and mesh_dim_names should have same length!");
  }
  if (shape.size() > world_size) {
    throw RuntimeError(
        fmt::format("Mesh should not be bigger than default world size {}, but found {} ranks!", world_size,
                    shape.size()));
  }
  if (shape.sizes.size() == 1 && shape.size() == world_size) {
    return {shape, {world()}};
  }
  std::vector<ProcessGroup> own;
  for (std::size_t dim = 0; dim < shape.sizes.size(); ++dim) {
    own.push_back(ProcessGroup::non_member());
    std::size_t index = 0;
    for (const RankList& ranks : shape.groups_along(dim)) {
      const ProcessGroup made =
          new_group(ranks, {.name = shape.dim_names[dim] + std::to_string(index++)}, site);
      own.back() = made.is_member() ? made : own.back();
    }
  }
  return {shape, own};
}

}  // namespace rollcall
