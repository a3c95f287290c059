#pragma once

// Point to point, in torch's names (torch/distributed/distributed_c10d.py). dst and src are global ranks; the group
// only selects the channels. A send completes when its receive is posted: no backend promises to buffer.

#include <optional>
#include <span>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/work.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

struct PointToPointOptions {
  ProcessGroup group{};
  std::int32_t tag = 0;  // Gloo matches by tag; NCCL has none and matches in order
};

// tensor: sent with the contents it has when the receiver takes it.
void send(const Tensor& tensor, Rank dst, const PointToPointOptions& options = {}, Site site = Site::here());
// tensor: overwritten. Without src, receives from the first sender (Gloo only). Returns the global source rank.
Rank recv(const Tensor& tensor, std::optional<Rank> src = std::nullopt,
          const PointToPointOptions& options = {}, Site site = Site::here());

Work isend(const Tensor& tensor, Rank dst, const PointToPointOptions& options = {}, Site site = Site::here());
Work irecv(const Tensor& tensor, std::optional<Rank> src = std::nullopt,
           const PointToPointOptions& options = {}, Site site = Site::here());

// One operation of a batch: torch's P2POp.
struct PointToPoint {
  OpKind kind = OpKind::send;
  Tensor tensor;
  Rank peer = 0;  // global
  PointToPointOptions options{};
};

// Starts all of them at once, in one NCCL group: they progress together, whatever their order. Returns one Work for
// each, except for groups that the caller does not belong to.
std::vector<Work> batch_isend_irecv(std::span<const PointToPoint> batch, Site site = Site::here());

namespace detail {

// Gloo's error for a peer that has no entry in its table of connections.
Error no_such_peer(Rank peer, Rank group_size);

// Ends a call to a peer without an entry as the release does. Throws.
[[noreturn]] void refuse_peer(Rank peer, Rank group_size, const TorchTraits& torch);

// Throws the backend's own errors for a send or receive, in Gloo's order. `is_ordered`: as NCCL, which has no tags.
// Where NCCL would wait for a peer that does not exist, this throws, because an error says more.
void check_message(const Op& op, Rank group_size, bool is_ordered, const TorchTraits& torch);

}  // namespace detail

}  // namespace rollcall
