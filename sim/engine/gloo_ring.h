#pragma once

// Gloo's ring all-reduce between ranks whose calls do not agree: who completes, who hangs, who dies,
// and with what bytes. Ranks that agree never come here.
//
// The algorithm cuts each rank's buffer into segments by its *own* size, so ranks with different sizes
// run different numbers of exchanges over the same connections. This module replays the exchanges:
// per rank a list of sends, receives and waits (gloo/allreduce.cc), per connection a queue in order
// (gloo/transport/tcp/pair.cc: a message larger than the posted receive aborts the process, a smaller
// one is accepted).

#include <cstddef>
#include <string>
#include <vector>

#include "sim/check/matcher.h"
#include "sim/dist/dtype.h"

namespace rollcall::sim {

struct RingMember {
  std::vector<std::byte> buffer;  // in: the rank's contribution; out: what its tensor holds afterwards
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
};

struct RingOutcome {
  check::Fate fate = check::Fate::hangs;
  std::string failure;  // crashes: the text that the process leaves on stderr
};

// At least two members, in group-rank order. Buffers of members that hang hold partial results.
std::vector<RingOutcome> replay_gloo_ring(std::vector<RingMember>& members);

// What a process leaves on stderr when a message of `sent` bytes meets a receive of `room` bytes.
std::string gloo_overflow_text(std::size_t sent, std::size_t room);

}  // namespace rollcall::sim
