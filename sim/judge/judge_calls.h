#pragma once

// The judge's part about calls that met: those that do not match, and those that only seem to. See judge.h.

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// evidence.mismatch must be set.
Verdict judge_mismatch(const Evidence& evidence);
// evidence.mispairing must be set.
Verdict judge_mispairing(const Evidence& evidence);

// If the run's mispairing came before the failure in slot `seq` of the group, it explains that failure. Sets it as the
// finding's first divergence, and takes its culprits where a majority decides.
void attach_divergence(const Evidence& evidence, GroupId group, std::int64_t seq, Finding& finding);

}  // namespace rollcall::check
