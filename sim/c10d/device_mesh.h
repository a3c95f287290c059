#pragma once

// DeviceMesh: the ranks as a grid, with a group along every row of every dimension
// (torch/distributed/device_mesh.py). [2, 2] with dimensions dp and tp has the dp groups {0,2}, {1,3} and the tp
// groups {0,1}, {2,3}.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/c10d/groups.h"

namespace rollcall {

// The arithmetic of a mesh, without groups. Ranks fill the grid row by row, the last dimension fastest.
struct MeshShape {
  using Dims = std::vector<std::size_t>;  // ascending; several mean one dimension flattened from them

  std::vector<Rank> sizes;
  std::vector<std::string> dim_names;

  Rank size() const;  // of the whole grid
  Rank size_along(const Dims& dims) const;
  // A rank's position in the grid; empty for a rank outside it.
  std::vector<Rank> coordinate_of(Rank rank) const;
  // The groups along dimensions, in the order in which DeviceMesh makes them: by their first ranks.
  std::vector<RankList> groups_along(const Dims& dims) const;
  std::vector<RankList> groups_along(std::size_t dim) const { return groups_along(Dims{dim}); }
  // Their indexes in the order in which releases with TorchTraits::mesh_swaps_dims make them.
  std::vector<Rank> rows_by_swap(std::size_t dim) const;
  // The index of the rank's own group among them, and the rank's place inside it.
  Rank row_of(const Dims& dims, Rank rank) const;
  Rank row_of(std::size_t dim, Rank rank) const { return row_of(Dims{dim}, rank); }
  Rank place_in(const Dims& dims, Rank rank) const;
};

// A mesh, or a slice of one. Copies share the groups of the mesh that they come from.
class DeviceMesh {
 public:
  // dim_name: of the mesh, or a flattened dimension of its root. Throws KeyError for an unknown name.
  const ProcessGroup& get_group(const std::string& dim_name) const;
  const ProcessGroup& get_group(std::size_t dim = 0) const { return dims_[dim].group; }
  Rank get_local_rank(const std::string& dim_name) const { return get_group(dim_name).rank(); }
  std::vector<Rank> get_coordinate() const;  // of the calling rank; empty outside the mesh

  std::size_t ndim() const { return dims_.size(); }
  Rank size(std::size_t dim) const { return size_of(dims_[dim]); }
  Rank size() const;
  std::vector<std::string> dim_names() const { return names_of(dims_); }

  // mesh["dp"], mesh["dp", "cp"]: some dimensions, in their order. Makes no groups. Throws KeyError for others.
  DeviceMesh slice(const std::vector<std::string>& names) const;
  DeviceMesh operator[](const std::string& name) const { return slice({name}); }

  // mesh["dp", "cp"]._flatten(): combines all dimensions of this mesh into one, called dp_cp by default, which the root
  // knows from then on. All ranks of the world have to call it. Throws ValueError for a name that is taken.
  DeviceMesh flatten(std::string name = {}, Site site = Site::here()) const;
  // mesh._unflatten("world", {2, 2}, {"dp", "tp"}): a mesh with these dimensions in place of one. Every call makes new
  // groups, which this mesh does not know. All ranks of the world have to call it. Throws ValueError for sizes that do
  // not fit, AttributeError in releases without it.
  DeviceMesh unflatten(const std::string& name, const MeshShape& shape, Site site = Site::here()) const;
  // The dimension flattened from these dimensions of this mesh; empty if they have not been flattened.
  std::optional<DeviceMesh> find_flattened(const MeshShape::Dims& dims) const;

 private:
  struct Dim {
    std::string name;
    MeshShape::Dims of_root;  // the root's dimensions that it spans
    ProcessGroup group;       // the calling rank's
  };
  struct Root {
    MeshShape shape;
    std::vector<Dim> flattened;
  };
  friend DeviceMesh init_device_mesh(const MeshShape& shape, Site site);

  DeviceMesh(std::shared_ptr<Root> root, std::vector<Dim> dims)
      : root_(std::move(root)), dims_(std::move(dims)) {}
  static std::vector<Rank> creation_order(const MeshShape& shape, const MeshShape::Dims& dims);
  static ProcessGroup make_groups(const Root& root, const std::string& name, const MeshShape::Dims& dims,
                                  Site site);
  const Dim* find_dim(const std::string& name) const;
  bool is_root() const;
  Rank size_of(const Dim& dim) const { return root_->shape.size_along(dim.of_root); }
  static std::vector<std::string> names_of(const std::vector<Dim>& dims);
  MeshShape::Dims root_dims() const;

  std::shared_ptr<Root> root_;
  std::vector<Dim> dims_;
};

// Makes the groups, called dp0, dp1, ...: all ranks of the world have to call it. A dimension that spans the whole
// world uses the world's group. With a device_id, one split_group makes the groups of a dimension. Throws RuntimeError
// for a mesh larger than the world.
DeviceMesh init_device_mesh(const MeshShape& shape, Site site = Site::here());

}  // namespace rollcall
