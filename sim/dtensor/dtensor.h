#pragma once

// DTensor: a tensor that lies on the ranks of a mesh, sharded, replicated or as partial sums (torch/distributed/
// tensor/_api.py). What changes its placements costs the collectives that torch pays (sim/dtensor/redistribute.h).
//
//   const DTensor weight = distribute_tensor(whole, mesh, {Shard(0)});
//   const Tensor all = weight.redistribute({Replicate()}).to_local();

#include <optional>

#include "sim/base/site.h"
#include "sim/c10d/device_mesh.h"
#include "sim/dtensor/functional.h"
#include "sim/dtensor/placement.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

class DTensor {
 public:
  // The calling rank's part; costs nothing. shape: of the whole, by default as if all parts were alike.
  static DTensor from_local(Tensor local, DeviceMesh mesh, Placements placements,
                            const std::optional<Shape>& shape = {});

  // With async_op the result waits for its last collective when it is used. RuntimeError for Replicate to Partial, and
  // for another number of placements.
  DTensor redistribute(Placements placements, bool async_op = false, Site site = Site::here()) const;
  // What the gradient of a redistributed tensor goes through on its way back to `placements`: nothing becomes partial,
  // since what is whole already needs no sum (_redistribute_backward).
  DTensor redistribute_backward(const Placements& placements, Site site = Site::here()) const;

  const Tensor& to_local() const { return local_.wait(); }
  // Replicated everywhere.
  Tensor full_tensor(Site site = Site::here()) const;

  const Shape& shape() const { return shape_; }
  const DeviceMesh& device_mesh() const { return mesh_; }
  const Placements& placements() const { return placements_; }

 private:
  friend DTensor distribute_tensor(const Tensor& tensor, const DeviceMesh& mesh, Placements placements,
                                   Site site);
  DTensor(functional::AsyncTensor local, Shape shape, DeviceMesh mesh, Placements placements)
      : local_(std::move(local)), shape_(shape), mesh_(std::move(mesh)), placements_(std::move(placements)) {}
  DTensor moved_to(Placements placements, Site site) const;

  functional::AsyncTensor local_;
  Shape shape_;
  DeviceMesh mesh_;
  Placements placements_;
};

// The first rank of every dimension of the mesh scatters its tensor, or broadcasts it.
DTensor distribute_tensor(const Tensor& tensor, const DeviceMesh& mesh, Placements placements,
                          Site site = Site::here());

}  // namespace rollcall
