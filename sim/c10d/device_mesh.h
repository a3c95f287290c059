#pragma once

// DeviceMesh: the ranks as a grid, with a group along every row of every dimension
// (torch/distributed/device_mesh.py). [2, 2] with dimensions dp and tp has the dp groups {0,2}, {1,3} and the tp
// groups {0,1}, {2,3}.

#include <string>
#include <vector>

#include "sim/c10d/groups.h"

namespace rollcall {

// The arithmetic alone. Ranks fill the grid row by row, the last dimension fastest.
struct MeshShape {
  std::vector<Rank> sizes;
  std::vector<std::string> dim_names;

  Rank size() const;  // of the whole grid
  // Where a rank stands; empty for a rank outside.
  std::vector<Rank> coordinate_of(Rank rank) const;
  // The groups along one dimension, in the order in which DeviceMesh makes them.
  std::vector<RankList> groups_along(std::size_t dim) const;
  // The index of the rank's own among them.
  Rank row_of(std::size_t dim, Rank rank) const;
};

class DeviceMesh {
 public:
  DeviceMesh(MeshShape shape, std::vector<ProcessGroup> groups)
      : shape_(std::move(shape)), groups_(std::move(groups)) {}

  const MeshShape& shape() const { return shape_; }
  // The rank's own group along a dimension. Error("KeyError") for a name that there is not.
  const ProcessGroup& get_group(const std::string& dim_name) const;
  Rank get_local_rank(const std::string& dim_name) const { return get_group(dim_name).rank(); }
  std::vector<Rank> get_coordinate() const;  // empty outside the mesh

 private:
  MeshShape shape_;
  std::vector<ProcessGroup> groups_;  // by dimension
};

// Makes the groups, called dp0, dp1, ...: all ranks of the world have to call it. A mesh of one dimension over
// the whole world has the world for its group. RuntimeError for a mesh larger than the world.
DeviceMesh init_device_mesh(const MeshShape& shape, Site site = Site::here());

}  // namespace rollcall
