#pragma once

// Arrows: in every collective and every message, from the rank that came last to each rank that waited
// for it; and from each call that never returned to the place where whoever it waits for went away. Drawing all pairs
// would hide the one fact worth seeing.

#include <cstdint>
#include <vector>

#include "sim/report/timeline.h"

namespace rollcall::viz {

struct TraceArrow {
  Time time = 0;                  // strictly inside all slices it touches
  std::uint32_t from = 0;         // index of the last arriver's span
  std::vector<std::uint32_t> to;  // of those who waited, by rank; never empty
  bool is_vain = false;           // the other way round: `from` waits in vain for those of `to`
};

// By time. Calls that nobody waited in, and calls that never completed, have none.
std::vector<TraceArrow> waiting_arrows(const Timeline& timeline);

}  // namespace rollcall::viz
