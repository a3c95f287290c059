#pragma once

// Which collectives change the placements of a DTensor (torch/distributed/tensor/_redistribute.py):
//
//   Shard -> Replicate      all_gather_into_tensor
//   Partial -> Replicate    all_reduce
//   Partial -> Shard        reduce_scatter_tensor
//   Shard(i) -> Shard(j)    all_to_all_single; on the CPU an all_gather_into_tensor
//   Replicate -> Shard      none
//
// On meshes of several dimensions they run one after another, or several at once where the mesh has a flattened
// dimension for them.

#include "sim/base/site.h"
#include "sim/c10d/device_mesh.h"
#include "sim/dtensor/functional.h"
#include "sim/dtensor/placement.h"
#include "sim/tensor/tensor.h"

namespace rollcall::detail {

// One step: a dimension of the mesh, or several flattened ones, gets another placement.
struct Transform {
  MeshShape::Dims mesh_dims;  // more than one: of a flattened dimension
  Placement from;
  Placement to;
  Shape logical_shape;  // of the tensor that this dimension of the mesh splits
};

// _gen_transform_infos and _optimize_transform_infos. `shape`: of the whole tensor. Depends on the calling rank where
// shards are uneven.
std::vector<Transform> plan_redistribution(const Shape& shape, const DeviceMesh& mesh, const Placements& from,
                                           const Placements& to);

// redistribute_local_tensor.
functional::AsyncTensor redistribute_local(const functional::AsyncTensor& local, const Shape& shape,
                                           const DeviceMesh& mesh, const Placements& from,
                                           const Placements& to, Site site);

}  // namespace rollcall::detail
