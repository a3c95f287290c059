// The two reducing algorithms (gloo/allreduce.cc, gloo/reduce.cc). Both begin alike: segments travel to the
// left, every rank adds its own to those that arrive, and after the round rank r holds the total of chunk r.
// all_reduce then passes the totals around the same ring; reduce sends them to the root.

#include <algorithm>

#include "sim/gloo/gloo_algorithms.h"

namespace rollcall::sim::gloo {
namespace {

constexpr std::size_t segment_bytes_max = 1024 * 1024;  // gloo/allreduce.h, kMaxSegmentSize

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A round sends the segments from `first_send` on and receives those from `first_receive` on, always with
// two exchanges in flight: the waits for exchange i come just before exchange i + 2.
void add_round(Steps& steps, Seat seat, const Segments& segments, std::size_t first_send,
               std::size_t first_receive, bool reduces) {
  using Kind = Step::Kind;
  for (std::size_t i = 0; i < segments.count; ++i) {
    if (i >= 2) {
      if (segments.length(first_receive + i - 2) > 0) {
        steps.push_back({.kind = Kind::await_receive});
      }
      if (segments.length(first_send + i - 2) > 0) {
        steps.push_back({.kind = Kind::await_send});
      }
    }
    if (i + 2 < segments.count) {
      if (const std::size_t length = segments.length(first_receive + i); length > 0) {
        steps.push_back({Kind::receive, reduces, seat.right(), segments.offset(first_receive + i), length});
      }
      if (const std::size_t length = segments.length(first_send + i); length > 0) {
        steps.push_back({Kind::send, false, seat.left(), segments.offset(first_send + i), length});
      }
    }
  }
}

// Like a gather, but of chunks that may be short.
void add_gather(Steps& steps, Seat seat, std::size_t root, const Segments& segments) {
  using Kind = Step::Kind;
  const auto chunk = [&](std::size_t rank, Kind kind, std::size_t peer) {
    const std::size_t offset = rank * segments.per_rank * segments.bytes;
    const std::size_t length =
        offset < segments.total ? std::min(segments.per_rank * segments.bytes, segments.total - offset) : 0;
    if (length > 0) {
      steps.push_back({kind, false, static_cast<std::uint32_t>(peer), offset, length});
    }
    return length > 0;
  };
  if (seat.rank != root) {
    if (chunk(seat.rank, Kind::send, root)) {
      steps.push_back({.kind = Kind::await_send});
    }
    return;
  }
  std::size_t receives = 0;
  for (std::size_t rank = 0; rank < seat.ranks; ++rank) {
    receives += rank != root && chunk(rank, Kind::receive, rank) ? 1 : 0;
  }
  steps.insert(steps.end(), receives, Step{.kind = Kind::await_receive});
}

}  // namespace

Segments::Segments(std::size_t ranks, std::size_t total_bytes, std::size_t element) : total(total_bytes) {
  const std::size_t limit = element * (segment_bytes_max / element);
  bytes = round_up(std::min((total + 2 * ranks - 1) / (2 * ranks), limit), element);
  bytes = std::max(bytes, element);
  count = round_up(std::max((total + bytes - 1) / bytes, 2 * ranks), ranks);
  per_rank = count / ranks;
}

std::size_t Segments::length(std::size_t segment) const {
  const std::size_t begin = offset(segment);
  return begin >= total ? 0 : std::min(bytes, total - begin);
}

Steps all_reduce_steps(Seat seat, std::size_t bytes, std::size_t element) {
  const Segments segments(seat.ranks, bytes, element);
  const std::size_t own = segments.per_rank;
  Steps steps;
  add_round(steps, seat, segments, (seat.rank + 1) * own, (seat.rank + 2) * own, true);
  add_round(steps, seat, segments, seat.rank * own, (seat.rank + 1) * own, false);
  return steps;
}

Steps reduce_steps(Seat seat, std::size_t root, std::size_t bytes, std::size_t element) {
  const Segments segments(seat.ranks, bytes, element);
  const std::size_t own = segments.per_rank;
  Steps steps;
  add_round(steps, seat, segments, (seat.rank + 1) * own, (seat.rank + 2) * own, true);
  add_gather(steps, seat, root, segments);
  return steps;
}

}  // namespace rollcall::sim::gloo
