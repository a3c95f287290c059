#pragma once

// Where the time of a run goes, rank by rank: computing, moving data, waiting for others. Computed from a timeline, so
// it says what the simulation did and needs no model of its own.

#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

// Durations of one rank, or of several ranks with equal ones. compute + transfer + waiting + rest =
// total.
struct RankProfile {
  RankSet ranks;
  Duration compute = 0;
  // Communication that is not hidden by the same rank's computing:
  Duration transfer = 0;  // after the last rank arrived
  Duration waiting = 0;   // before that
  Duration hidden = 0;    // communication that is hidden by computing; part of `compute`
  Duration rest = 0;      // none of the above: before the first call, after the last

  Duration exposed() const { return transfer + waiting; }
};

struct RunProfile {
  Duration total = 0;
  std::int64_t steps = 0;          // inputs of the rank that took the most; 0 if they are not counted
  std::vector<RankProfile> ranks;  // equal ones merged, by first rank
  std::int64_t slowed = 0;         // calls that took longer because of concurrent calls
  std::int64_t kernels = 0;        // of all ranks
  std::int64_t by_roofline = 0;    // of those kernels
};

// The report needs a timeline.
RunProfile profile_of(const Report& report);

std::string profile_text(const Report& report, const RunProfile& profile);
std::string profile_json(const Report& report, const RunProfile& profile);

}  // namespace rollcall::viz
