#pragma once

// Finds where a rank broke with its habits. Training is periodic; a call that never followed its predecessors
// before is where a rank left its own path. This decides where a majority vote cannot: between two
// ranks, and in a cycle.

#include <optional>

#include "sim/diagnose/dump_ops.h"

namespace rollcall::check {

struct Departure {
  const RankOps* ops = nullptr;
  const DumpOp* op = nullptr;        // the call that it made
  const DumpOp* expected = nullptr;  // the call that it made in this place before
  std::size_t context = 0;           // how many calls before both are the same: the strength of the habit
};

// The call, from a little before `op` on, that breaks with the strongest habit. Null if the past gives no
// example.
std::optional<Departure> find_departure(const RankOps& ops, const DumpOp& op);

}  // namespace rollcall::check
