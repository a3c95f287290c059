#pragma once

// The judge's part about what ranks observed themselves: failed checks, tensors touched too early, roots
// outside a group. Also about calls that no rank waits for.

#include <initializer_list>

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// The first of these kinds; null if there is none.
const RankObservation* first_observation(const Evidence& evidence,
                                         std::initializer_list<Observation::Kind> kinds);
// The verdict about an observation, with all ranks that made the same mistake.
Verdict judge_observation(const Evidence& evidence, const RankObservation& first);

// For calls that will never complete and that no rank waits for. Returns Completed if there are none.
Verdict judge_open_calls(const Evidence& evidence);

}  // namespace rollcall::check
