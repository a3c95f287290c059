#pragma once

// How long a matched collective takes. Pure integer arithmetic.
//
// The model is the textbook one: a latency per step of a binary tree over the members, and every byte
// crossing one uniform link. It orders events and makes timelines readable; it does not predict a
// cluster (see docs/decisions/0004-uniform-cost.md).

#include "sim/dist/op.h"

namespace rollcall::sim {

struct UniformCost {
  Duration step_latency = 5 * microsecond;
  std::int64_t bytes_per_microsecond = 25'000;  // 25 GB/s

  // From the last member's arrival to the completion everywhere. `bytes` is one member's input.
  Duration of(OpKind kind, std::int64_t bytes, Rank members) const;
};

}  // namespace rollcall::sim
