#pragma once

// DTensor: a tensor distributed over the ranks of a mesh, sharded, replicated or as partial sums (torch/distributed/
// tensor/_api.py). Changing its placements issues the same collectives as torch (sim/dtensor/redistribute.h).
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
  // Makes a DTensor of the calling rank's part; costs nothing. shape: of the whole, by default as if all parts had one
  // size.
  static DTensor from_local(Tensor local, DeviceMesh mesh, Placements placements,
                            const std::optional<Shape>& shape = {});

  // With async_op the result waits for its last collective when it is used. Throws RuntimeError for Replicate to
  // Partial, ValueError for another number of placements.
  DTensor redistribute(Placements placements, bool async_op = false, Site site = Site::here()) const;
  // Redistributes the gradient of a redistributed tensor back to `placements`. Nothing becomes partial, because a whole
  // tensor needs no sum (_redistribute_backward).
  DTensor redistribute_backward(const Placements& placements, Site site = Site::here()) const;

  const Tensor& to_local() const { return local_.wait(); }
  // The whole tensor, on every rank.
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
