#pragma once

// Sentences about a repair: the calls that ranks would have to make instead of their own.

#include <span>
#include <vector>

#include "sim/match/outlook.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// One step for each different edit, with all ranks that need it.
std::vector<RepairStep> repair_steps(const CallEdits& edits, std::span<const RankProgram> programs);

// True if the finding is about the call that the edits insert or leave out. Its words then fit, whichever rank is to
// blame.
bool says_the_same(const CallEdits& edits, std::span<const RankProgram> programs, const Finding& finding);

// Kind, place and words of a deadlock that the edits of its culprits fix. `places`: the calls in which ranks wait.
void word_culprits(const CallEdits& edits, std::span<const RankProgram> programs,
                   std::span<const Place> places, Finding& finding);

}  // namespace rollcall::check
