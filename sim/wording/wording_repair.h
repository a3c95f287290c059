#pragma once

// Sentences about a repair: what ranks would have to call instead of what they call.

#include <span>
#include <vector>

#include "sim/match/outlook.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// The edits of ranks that are to change alike, one step each.
std::vector<RepairStep> repair_steps(const CallEdits& edits, std::span<const RankProgram> programs);

// Is the finding about the call that the edits add or take away? Then its words fit, whoever is to blame.
bool says_the_same(const CallEdits& edits, std::span<const RankProgram> programs, const Finding& finding);

// Kind, place and words of a deadlock that the edits of its culprits mend. `places`: the calls in which ranks wait.
void word_culprits(const CallEdits& edits, std::span<const RankProgram> programs,
                   std::span<const Place> places, Finding& finding);

}  // namespace rollcall::check
