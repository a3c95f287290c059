#pragma once

// Join's shadow calls: the calls that the hooks make for a rank that has run out of inputs, next to an active rank's
// calls. A hook is right if the two agree number by number; if it is one call short, everything after it is shifted.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/report.h"
#include "viz/rows/call_sequences.h"

namespace rollcall::viz {

struct ShadowPairs {
  struct Row {
    std::int64_t seq = 0;
    CallSequences::Cell forward;  // empty: no call with this number
    CallSequences::Cell shadow;   // `differs` is set here
  };

  std::string group;
  Rank active = -1;
  Rank joined = -1;
  std::vector<Row> rows;  // around the first one that differs, or the last one
  std::optional<std::size_t> first_difference;
};

// Empty if no rank has shadowed a call that an active rank made. Needs a timeline.
std::optional<ShadowPairs> shadow_pairs(const Report& report);

}  // namespace rollcall::viz
