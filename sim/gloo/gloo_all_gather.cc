// A ring (gloo/allgather.cc). Blocks travel to the right, each in two halves, and each rank passes on the blocks
// that arrive from the left. Two exchanges are in flight at a time.

#include "sim/gloo/gloo_algorithms.h"

namespace rollcall::sim::gloo {

Steps all_gather_steps(Seat seat, std::size_t block_bytes) {
  using Kind = Step::Kind;
  if (block_bytes == 0) {
    return {};  // in PyTorch 1.13, Gloo divides by it, and the process dies of SIGFPE
  }
  const std::size_t half = block_bytes / 2;
  Steps steps;
  const auto await_one = [&steps] {
    steps.push_back({.kind = Kind::await_send});
    steps.push_back({.kind = Kind::await_receive});
  };
  for (std::size_t i = 0; i < 2 * (seat.ranks - 1); ++i) {
    const bool first = i % 2 == 0;
    const std::size_t offset = first ? 0 : half;
    const std::size_t length = first ? half : block_bytes - half;
    const std::size_t sent = seat.at(seat.ranks - i / 2);
    const std::size_t received = seat.at(seat.ranks - i / 2 - 1);
    if (i >= 2) {
      await_one();
    }
    steps.push_back({Kind::send, false, seat.right(), sent * block_bytes + offset, length});
    steps.push_back({Kind::receive, false, seat.left(), received * block_bytes + offset, length});
  }
  if (seat.ranks > 1) {
    await_one();
    await_one();
  }
  return steps;
}

}  // namespace rollcall::sim::gloo
