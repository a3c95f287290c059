#pragma once

// The verdict on schedules that have different outcomes.

#include <vector>

#include "sim/report/report.h"

namespace rollcall::sim {

// The failure of some schedules, as a race. `wrong`: the verdict of the first one that fails. `deciders`: the ranks
// that had a choice in it, or whose calls came in one of several orders. All of them are to blame: each way is right,
// only their combination is not.
Race race_of(const Verdict& wrong, const RankSet& deciders, std::vector<Outcome> outcomes,
             std::int64_t schedules);

// True if all outcomes have the same verdict, of any kind.
bool agree(const std::vector<Outcome>& outcomes);

}  // namespace rollcall::sim
