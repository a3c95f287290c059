#pragma once

// What the ranks of a scenario would call if every call completed at once: each rank's program, without the
// others. Values are those the rank put in, so a program that decides by a result may take another way here.

#include <vector>

#include "scenarios/format/scenario.h"
#include "sim/judge/suspects.h"

namespace rollcall::scenario {

// The programs of `ranks`, ascending. Endless ones are cut off.
std::vector<check::RankProgram> foresee(const Scenario& scenario, const std::vector<Rank>& ranks);

}  // namespace rollcall::scenario
