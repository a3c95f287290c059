#pragma once

// Point to point, in torch's names (torch/distributed/distributed_c10d.py). dst and src are global
// ranks; the group only says whose channels are used. A send completes when its receive is there:
// no backend promises to buffer.

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

// tensor: sent as it is when the receiver takes it.
void send(const Tensor& tensor, Rank dst, const PointToPointOptions& options = {}, Site site = Site::here());
// tensor: overwritten. Without src, from whoever sends first (Gloo only). Returns the global source rank.
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

// All of them at once, in one NCCL group: they progress together, whatever their order. One Work each, and
// none for a group that the caller does not belong to.
std::vector<Work> batch_isend_irecv(std::span<const PointToPoint> batch, Site site = Site::here());

namespace detail {

// What Gloo raises for a peer that its table of connections has no entry for.
Error no_such_peer(Rank peer, Rank group_size);

// Ends a call to such a peer as the release does. Throws.
[[noreturn]] void refuse_peer(Rank peer, Rank group_size, const TorchTraits& torch);

// What the backend itself refuses about a send or receive, in Gloo's order. `is_ordered`: as NCCL, which has
// no tags; and where it would wait for a peer that does not exist, an error says more.
void check_message(const Op& op, Rank group_size, bool is_ordered, const TorchTraits& torch);

}  // namespace detail

}  // namespace rollcall
