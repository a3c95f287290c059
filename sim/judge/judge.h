#pragma once

// The judge: evidence in, verdict out. Pure. It names the cause, not the symptom: which ranks deviate,
// in which call of which group, and what to do about it. The same judge serves simulated, real and
// recorded runs.
//
// When several things went wrong, the first event counts: a wrong device or a mismatch before the hang
// it leads to. A deadlock is a proof, not a timeout: no rank can make progress.

#include <vector>

#include "sim/match/evidence.h"
#include "sim/report/report.h"

namespace rollcall::check {

Verdict judge(const Evidence& evidence);

// The final state of every rank. Ranks in equal states form one class; classes are ordered by their first rank.
std::vector<RankClass> classify(const Evidence& evidence);

}  // namespace rollcall::check
