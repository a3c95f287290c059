#pragma once

// Arrows: in every collective and every message, from the rank that arrived last to each rank that waited
// for it; and from each call that never returned to the place where a rank it waits for ended. Drawing all pairs
// would hide the one fact worth seeing.

#include <cstdint>
#include <vector>

#include "sim/report/timeline.h"

namespace rollcall::viz {

struct TraceArrow {
  Time time = 0;                  // strictly inside all slices it touches
  std::uint32_t from = 0;         // index of the span that arrived last
  std::vector<std::uint32_t> to;  // spans that waited, by rank; never empty
  bool is_vain = false;           // reversed: `from` waits in vain for those in `to`
};

// Returns the arrows by time. Calls in which no rank waited, and calls that never completed, have none.
std::vector<TraceArrow> waiting_arrows(const Timeline& timeline);

}  // namespace rollcall::viz
