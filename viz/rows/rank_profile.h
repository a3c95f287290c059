#pragma once

// Where the time of a run goes, rank by rank: computing, moving data, waiting for others. From a
// timeline, so it says what the simulation did and needs no model of its own.

#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

// Durations of one rank, or of several alike. compute + transfer + waiting + rest = total.
struct RankProfile {
  RankSet ranks;
  Duration compute = 0;
  // Communication that no computing of the same rank hides:
  Duration transfer = 0;  // after the last rank had come
  Duration waiting = 0;   // before
  Duration hidden = 0;    // communication that computing did hide; part of `compute`
  Duration rest = 0;      // nothing of the above: before the first call, after the last

  Duration exposed() const { return transfer + waiting; }
};

struct RunProfile {
  Duration total = 0;
  std::int64_t steps = 0;          // inputs of the rank that took most; 0: the program does not count them
  std::vector<RankProfile> ranks;  // equal ones together, by first rank
  std::int64_t slowed = 0;         // calls that took longer for others beside them
  std::int64_t kernels = 0;        // of all ranks
  std::int64_t by_roofline = 0;    // of these
};

// The report needs a timeline.
RunProfile profile_of(const Report& report);

std::string profile_text(const Report& report, const RunProfile& profile);
std::string profile_json(const Report& report, const RunProfile& profile);

}  // namespace rollcall::viz
