#pragma once

// Gloo's collective algorithms, each as the list of steps one rank runs (gloo_transport.h). A rank builds
// its list from its *own* view of the call: ranks that disagree run lists that do not match.
//
// `memory` below says what a member's memory holds; offsets in the steps are into it.

#include "sim/gloo/gloo_transport.h"

namespace rollcall::sim::gloo {

// A rank's place in its group.
struct Seat {
  std::size_t rank = 0;
  std::size_t ranks = 1;

  std::uint32_t at(std::size_t distance) const {  // the rank `distance` places to the right in the ring
    return static_cast<std::uint32_t>((rank + distance) % ranks);
  }
  std::uint32_t right() const { return at(1); }
  std::uint32_t left() const { return at(ranks - 1); }
};

// How the ring algorithms cut a buffer: one chunk per rank, in group order, each of two segments or more;
// the last ones may be short or empty.
struct Segments {
  std::size_t total;     // bytes of the buffer
  std::size_t bytes;     // of a full segment
  std::size_t count;     // of all segments
  std::size_t per_rank;  // segments in a chunk

  Segments(std::size_t ranks, std::size_t total_bytes, std::size_t element);

  std::size_t offset(std::size_t segment) const { return (segment % count) * bytes; }
  std::size_t length(std::size_t segment) const;
};

// memory: the tensor.
Steps all_reduce_steps(Seat seat, std::size_t bytes, std::size_t element);
Steps reduce_steps(Seat seat, std::size_t root, std::size_t bytes, std::size_t element);
Steps broadcast_steps(Seat seat, std::size_t root, std::size_t bytes);

// memory: a block for every rank, the rank's own filled in.
Steps all_gather_steps(Seat seat, std::size_t block_bytes);

// memory of the root: a block for every rank, its own filled in; of the others: their block.
Steps gather_steps(Seat seat, std::size_t root, std::size_t block_bytes);

// memory of the root: a block for every rank; of the others: room for theirs.
Steps scatter_steps(Seat seat, std::size_t root, std::size_t block_bytes);

// The parts that go to every rank, or come from it, in bytes, one after the other.
struct Parts {
  std::vector<std::size_t> lengths;
  std::vector<std::size_t> offsets;
  std::size_t total = 0;

  void add(std::size_t length);
};

// memory: the output, then the input. The rank's own part is already copied.
Steps all_to_all_steps(Seat seat, const Parts& output, const Parts& input);

// No memory.
Steps barrier_steps(Seat seat);
// All ranks report to rank 0, which answers once all have reported.
Steps monitored_barrier_steps(Seat seat);

}  // namespace rollcall::sim::gloo
