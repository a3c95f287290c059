// The algorithms without relays, in which every message goes directly from the rank that has the data to the rank that
// wants it (gloo/gather.cc, scatter.cc, alltoall.cc, alltoallv.cc), and the dissemination barrier (gloo/barrier.cc).

#include "sim/gloo/gloo_algorithms.h"

namespace rollcall::sim::gloo {

using Kind = Step::Kind;

namespace {

// The root exchanges a block with every other rank, which has one step only.
Steps direct_steps(Seat seat, std::size_t root, std::size_t block_bytes, bool root_sends) {
  const auto exchange = [&](bool sends, std::size_t peer, std::size_t offset) {
    return Step{sends ? Kind::send : Kind::receive, false, static_cast<std::uint32_t>(peer), offset,
                block_bytes};
  };
  const auto end = [](bool sends) { return Step{.kind = sends ? Kind::await_send : Kind::await_receive}; };
  if (seat.rank != root) {
    return {exchange(!root_sends, root, 0), end(!root_sends)};
  }
  Steps steps;
  for (std::size_t rank = 0; rank < seat.ranks; ++rank) {
    if (rank != root) {
      steps.push_back(exchange(root_sends, rank, rank * block_bytes));
    }
  }
  steps.insert(steps.end(), seat.ranks - 1, end(root_sends));
  return steps;
}

}  // namespace

Steps gather_steps(Seat seat, std::size_t root, std::size_t block_bytes) {
  return direct_steps(seat, root, block_bytes, false);
}

Steps scatter_steps(Seat seat, std::size_t root, std::size_t block_bytes) {
  return direct_steps(seat, root, block_bytes, true);
}

void Parts::add(std::size_t length) {
  offsets.push_back(total);
  lengths.push_back(length);
  total += length;
}

Steps all_to_all_steps(Seat seat, const Parts& output, const Parts& input) {
  Steps steps;
  for (std::size_t i = 1; i < seat.ranks; ++i) {
    const std::uint32_t to = seat.at(i);
    const std::uint32_t from = seat.at(seat.ranks - i);
    steps.push_back({Kind::send, false, to, output.total + input.offsets[to], input.lengths[to]});
    steps.push_back({Kind::receive, false, from, output.offsets[from], output.lengths[from]});
  }
  for (std::size_t i = 1; i < seat.ranks; ++i) {
    steps.push_back({.kind = Kind::await_send});
    steps.push_back({.kind = Kind::await_receive});
  }
  return steps;
}

Steps barrier_steps(Seat seat) {
  Steps steps;
  for (std::size_t distance = 1; distance < seat.ranks; distance *= 2) {
    steps.push_back({.kind = Kind::receive, .peer = seat.at(seat.ranks - distance)});
    steps.push_back({.kind = Kind::send, .peer = seat.at(distance)});
    steps.push_back({.kind = Kind::await_receive});
    steps.push_back({.kind = Kind::await_send});
  }
  return steps;
}

Steps monitored_barrier_steps(Seat seat) {
  Steps steps;
  const auto exchange = [&](Kind kind, std::uint32_t peer) {
    steps.push_back({.kind = kind, .peer = peer});
    steps.push_back({.kind = kind == Kind::send ? Kind::await_send : Kind::await_receive});
  };
  if (seat.rank != 0) {
    exchange(Kind::send, 0);
    exchange(Kind::receive, 0);
    return steps;
  }
  for (const Kind kind : {Kind::receive, Kind::send}) {
    for (std::uint32_t peer = 1; peer < seat.ranks; ++peer) {
      exchange(kind, peer);
    }
  }
  return steps;
}

}  // namespace rollcall::sim::gloo
