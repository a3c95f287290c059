#include "sim/c10d/device_mesh.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

// ('dp', 'tp'), ('dp',): as Python prints a tuple.
std::string python_tuple(const std::vector<std::string>& names) {
  return fmt::format("('{}'{})", fmt::join(names, "', '"), names.size() == 1 ? "," : "");
}

std::string python_list(const std::vector<std::string>& names) {
  return fmt::format("['{}']", fmt::join(names, "', '"));
}

}  // namespace

Rank MeshShape::size() const {
  return std::accumulate(sizes.begin(), sizes.end(), Rank{1}, std::multiplies<>());
}

Rank MeshShape::size_along(const Dims& dims) const {
  Rank ranks = 1;
  for (const std::size_t dim : dims) {
    ranks *= sizes[dim];
  }
  return ranks;
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

std::vector<RankList> MeshShape::groups_along(const Dims& dims) const {
  std::vector<RankList> groups(static_cast<std::size_t>(size() / size_along(dims)));
  for (Rank rank = 0; rank < size(); ++rank) {
    groups[static_cast<std::size_t>(row_of(dims, rank))].push_back(rank);
  }
  return groups;
}

// _MeshLayout.remap_to_tensor (torch/distributed/_mesh_layout.py): rows are counted along the other dimensions.
Rank MeshShape::row_of(const Dims& dims, Rank rank) const {
  const std::vector<Rank> place = coordinate_of(rank);
  Rank row = 0;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    if (std::ranges::find(dims, dim) == dims.end()) {
      row = row * sizes[dim] + place[dim];
    }
  }
  return row;
}

// device_mesh.py of 2.6, _init_process_groups: mesh.swapdims(-1, dim).
std::vector<Rank> MeshShape::rows_by_swap(std::size_t dim) const {
  std::vector<std::pair<std::vector<Rank>, Rank>> rows;  // with their positions after the swap
  for (Rank rank = 0; rank < size(); ++rank) {
    std::vector<Rank> place = coordinate_of(rank);
    if (place[dim] == 0) {
      std::swap(place[dim], place.back());
      place.pop_back();
      rows.emplace_back(std::move(place), row_of(dim, rank));
    }
  }
  std::ranges::sort(rows);
  std::vector<Rank> order;
  for (const auto& [place, row] : rows) {
    order.push_back(row);
  }
  return order;
}

Rank MeshShape::place_in(const Dims& dims, Rank rank) const {
  const std::vector<Rank> coordinate = coordinate_of(rank);
  Rank place = 0;
  for (const std::size_t dim : dims) {
    place = place * sizes[dim] + coordinate[dim];
  }
  return place;
}

const DeviceMesh::Dim* DeviceMesh::find_dim(const std::string& name) const {
  const auto found = std::ranges::find(dims_, name, &Dim::name);
  return found == dims_.end() ? nullptr : &*found;
}

// Flattened dimensions are known to the mesh that all others were sliced from.
bool DeviceMesh::is_root() const {
  return dims_.size() == root_->shape.dim_names.size() &&
         std::ranges::equal(dims_, root_->shape.dim_names, {}, &Dim::name);
}

const ProcessGroup& DeviceMesh::get_group(const std::string& dim_name) const {
  for (const Dim& flattened : root_->flattened) {
    if (flattened.name == dim_name) {
      return flattened.group;
    }
  }
  if (const Dim* dim = find_dim(dim_name)) {
    return dim->group;
  }
  throw Error("KeyError", fmt::format("Invalid mesh_dim_name {}. Valid mesh_dim_names are {}.", dim_name,
                                      fmt::join(dim_names(), ", ")));
}

std::vector<Rank> DeviceMesh::get_coordinate() const {
  std::vector<Rank> coordinate;
  if (get_rank() < root_->shape.size()) {
    for (const Dim& dim : dims_) {
      coordinate.push_back(root_->shape.place_in(dim.of_root, get_rank()));
    }
  }
  return coordinate;
}

Rank DeviceMesh::size() const { return root_->shape.size_along(root_dims()); }

std::vector<std::string> DeviceMesh::names_of(const std::vector<Dim>& dims) {
  std::vector<std::string> names;
  for (const Dim& dim : dims) {
    names.push_back(dim.name);
  }
  return names;
}

MeshShape::Dims DeviceMesh::root_dims() const {
  MeshShape::Dims dims;
  for (const Dim& dim : dims_) {
    dims.insert(dims.end(), dim.of_root.begin(), dim.of_root.end());
  }
  return dims;
}

// _get_slice_mesh_layout.
DeviceMesh DeviceMesh::slice(const std::vector<std::string>& names) const {
  std::vector<Dim> known = dims_;
  if (is_root()) {
    known.insert(known.end(), root_->flattened.begin(), root_->flattened.end());
  }
  std::vector<Dim> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name, &Dim::name);
    if (found == known.end()) {
      throw Error("KeyError", fmt::format("Invalid mesh_dim_names {} specified. Valid mesh_dim_names are {}.",
                                          python_tuple(names), python_list(names_of(known))));
    }
    chosen.push_back(*found);
  }
  DeviceMesh sliced(root_, std::move(chosen));
  const MeshShape::Dims dims = sliced.root_dims();
  if (!std::ranges::is_sorted(dims)) {
    throw Error(
        "KeyError",
        fmt::format("Invalid mesh_dim_names {} specified. Mesh dim indices should be in ascending order.",
                    python_tuple(names)));
  }
  if (std::ranges::adjacent_find(dims) != dims.end()) {
    throw RuntimeError(fmt::format("Slicing overlapping dim_names {} is not allowed.", python_tuple(names)));
  }
  return sliced;
}

// _create_flatten_mesh.
DeviceMesh DeviceMesh::flatten(std::string name, Site site) const {
  if (name.empty()) {
    name = fmt::format("{}", fmt::join(dim_names(), "_"));
  }
  if (ndim() == 1 && dims_.front().name == name) {
    return *this;
  }
  const auto& taken = root_->shape.dim_names;
  if (std::ranges::find(taken, name) != taken.end()) {
    throw ValueError(fmt::format("{} already exists for submesh of the root mesh.", name));
  }
  MeshShape::Dims dims = root_dims();
  for (const Dim& flattened : root_->flattened) {
    if (flattened.name == name && flattened.of_root != dims) {
      throw ValueError(fmt::format(
          "Flatten mesh with mesh_dim_name {} has been created before, Please specify another valid "
          "mesh_dim_name.",
          name));
    }
    if (flattened.name == name) {
      return {root_, {flattened}};
    }
  }
  const ProcessGroup group = make_groups(*root_, name, dims, site);
  root_->flattened.push_back({std::move(name), std::move(dims), group});
  return {root_, {root_->flattened.back()}};
}

std::optional<DeviceMesh> DeviceMesh::find_flattened(const MeshShape::Dims& dims) const {
  MeshShape::Dims wanted;
  for (const std::size_t dim : dims) {
    wanted.insert(wanted.end(), dims_[dim].of_root.begin(), dims_[dim].of_root.end());
  }
  const auto found = std::ranges::find(root_->flattened, wanted, &Dim::of_root);
  return found == root_->flattened.end() ? std::nullopt
                                         : std::optional<DeviceMesh>(DeviceMesh(root_, {*found}));
}

// _unflatten. Dimensions outside this mesh stay as they are.
DeviceMesh DeviceMesh::unflatten(const std::string& name, const MeshShape& shape, Site site) const {
  if (!this_rank().torch->mesh_unflattens) {
    throw Error("AttributeError", "'DeviceMesh' object has no attribute '_unflatten'");
  }
  const Dim* const dim = find_dim(name);
  if (dim == nullptr) {
    throw ValueError(
        fmt::format("dim {} specified in `_unflatten` is not in {}", name, python_tuple(dim_names())));
  }
  if (shape.sizes.size() != shape.dim_names.size()) {
    throw RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!");
  }
  if (shape.size() != size_of(*dim)) {
    throw ValueError(
        fmt::format("The product of mesh_sizes=({}) is {}, but the original dimension at dim={} has size {}. "
                    "These must be equal for unflatten to work correctly.",
                    fmt::join(shape.sizes, ", "), shape.size(), dim - dims_.data(), size_of(*dim)));
  }
  if (dim->of_root.size() != 1) {
    throw NotImplementedError(
        "a dimension that was flattened is not unflattened again: slice the mesh it came from");
  }
  const std::size_t at = dim->of_root.front();
  const std::size_t added = shape.sizes.size();
  auto root = std::make_shared<Root>(Root{.shape = root_->shape, .flattened = {}});
  const auto put = [at](auto& list, const auto& parts) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), parts.begin(), parts.end());
  };
  put(root->shape.sizes, shape.sizes);
  put(root->shape.dim_names, shape.dim_names);
  std::vector<Dim> dims;
  for (const Dim& old : dims_) {
    if (&old != dim) {
      dims.push_back(old);
      for (std::size_t& index : dims.back().of_root) {
        index += index > at ? added - 1 : 0;
      }
      continue;
    }
    for (std::size_t i = 0; i < added; ++i) {
      dims.push_back({shape.dim_names[i], {at + i}, make_groups(*root, shape.dim_names[i], {at + i}, site)});
    }
  }
  return {std::move(root), std::move(dims)};
}

std::vector<Rank> DeviceMesh::creation_order(const MeshShape& shape, const MeshShape::Dims& dims) {
  if (this_rank().torch->mesh_swaps_dims && dims.size() == 1) {
    return shape.rows_by_swap(dims.front());
  }
  std::vector<Rank> rows(static_cast<std::size_t>(shape.size() / shape.size_along(dims)));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// _init_one_process_group: the rank's own group.
ProcessGroup DeviceMesh::make_groups(const Root& root, const std::string& name, const MeshShape::Dims& dims,
                                     Site site) {
  const bool is_whole = root.shape.size_along(dims) == detail::default_group().size();
  const bool is_alone =
      root.shape.sizes.size() == 1 || dims.size() > 1;  // a flattened dimension is a mesh of its own
  if (is_whole && (is_alone || this_rank().torch->mesh_reuses_world)) {
    return world();
  }
  const std::vector<RankList> groups = root.shape.groups_along(dims);
  if (this_rank().is_device_bound) {
    return split_group(groups, {.name = name}, site);
  }
  ProcessGroup own = ProcessGroup::non_member();
  for (const Rank row : creation_order(root.shape, dims)) {
    const ProcessGroup made =
        new_group(groups[static_cast<std::size_t>(row)], {.name = name + std::to_string(row)}, site);
    own = made.is_member() ? made : own;
  }
  return own;
}

DeviceMesh init_device_mesh(const MeshShape& shape, Site site) {
  const Rank world_size = detail::default_group().size();
  const std::set<std::string> names(shape.dim_names.begin(), shape.dim_names.end());
  if (names.size() != shape.dim_names.size()) {
    throw RuntimeError(
        fmt::format("Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {}",
                    python_tuple(shape.dim_names)));
  }
  if (shape.sizes.size() != shape.dim_names.size()) {
    throw RuntimeError(fmt::format(
        "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): {} and "
        "len(mesh_shape):{}.",
        shape.dim_names.size(), shape.sizes.size()));
  }
  if (shape.size() > world_size) {
    throw RuntimeError(
        fmt::format("Mesh should not be bigger than default world size {}, but found {} ranks!", world_size,
                    shape.size()));
  }
  auto root = std::make_shared<DeviceMesh::Root>(DeviceMesh::Root{.shape = shape, .flattened = {}});
  std::vector<DeviceMesh::Dim> dims;
  for (std::size_t dim = 0; dim < shape.sizes.size(); ++dim) {
    dims.push_back(
        {shape.dim_names[dim], {dim}, DeviceMesh::make_groups(*root, shape.dim_names[dim], {dim}, site)});
  }
  return {std::move(root), std::move(dims)};
}

}  // namespace rollcall
