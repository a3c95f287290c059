#pragma once

// The verdict on schedules that have different outcomes.

#include <vector>

#include "sim/report/report.h"

namespace rollcall::sim {

// What goes wrong in some schedules, as a race. `wrong` is the first that does; `deciders` are the ranks that had
// something to decide in it, or whose calls came in one of several orders. All of them are to blame: each of the ways
// is right, only their combination is not.
Race race_of(const Verdict& wrong, const RankSet& deciders, std::vector<Outcome> outcomes,
             std::int64_t schedules);

// Do all have the same verdict, of any kind?
bool agree(const std::vector<Outcome>& outcomes);

}  // namespace rollcall::sim
