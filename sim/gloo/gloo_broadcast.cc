// A binomial tree (gloo/broadcast.cc). Counted from the root, rank v receives from v without its highest bit,
// and sends to v plus every higher power of two. The root waits until its children have taken the
// message: there is no buffering.

#include <bit>

#include "sim/gloo/gloo_algorithms.h"

namespace rollcall::sim::gloo {

Steps broadcast_steps(Seat seat, std::size_t root, std::size_t bytes) {
  using Kind = Step::Kind;
  const std::size_t from_root = (seat.rank + seat.ranks - root) % seat.ranks;
  const auto peer = [&](std::size_t v) { return static_cast<std::uint32_t>((v + root) % seat.ranks); };
  Steps steps;
  std::size_t bit = 1;
  if (from_root > 0) {
    const std::size_t parent_bit = std::bit_floor(from_root);
    steps.push_back({Kind::receive, false, peer(from_root - parent_bit), 0, bytes});
    steps.push_back({.kind = Kind::await_receive});
    bit = parent_bit * 2;
  }
  std::size_t sends = 0;
  for (; from_root + bit < seat.ranks; bit *= 2) {
    steps.push_back({Kind::send, false, peer(from_root + bit), 0, bytes});
    ++sends;
  }
  steps.insert(steps.end(), sends, Step{.kind = Kind::await_send});
  return steps;
}

}  // namespace rollcall::sim::gloo
