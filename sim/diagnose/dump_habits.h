#pragma once

// What a rank usually does next. Training is periodic; a call that never followed its predecessors
// before is where a rank left its own path. This decides where a count of votes cannot: between two
// ranks, and in a cycle.

#include <optional>

#include "sim/diagnose/dump_ops.h"

namespace rollcall::check {

struct Departure {
  std::size_t op = 0;        // index into RankOps::ops: what it did
  std::size_t expected = 0;  // what it did in this place before
  std::size_t context = 0;   // how many calls before it were as they had been then: the strength of the habit
};

// The call among the last ones, from a little before `op` on, that breaks with the strongest habit. Nothing
// where the past gives no example.
std::optional<Departure> find_departure(const RankOps& ops, std::size_t op);

}  // namespace rollcall::check
