#pragma once

// Join's shadow: what the hooks of a rank that has run out of inputs call, next to what an active rank calls. A
// hook is right when the two agree number by number; where it is one call short, everything after it is shifted.

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
    CallSequences::Cell forward;  // empty: no call of this number
    CallSequences::Cell shadow;   // `differs` is said of it
  };

  std::string group;
  Rank active = -1;
  Rank joined = -1;
  std::vector<Row> rows;  // around the first that differs, or the last
  std::optional<std::size_t> first_difference;
};

// Nothing when no rank has shadowed a call that an active rank made. Needs a timeline.
std::optional<ShadowPairs> shadow_pairs(const Report& report);

}  // namespace rollcall::viz
