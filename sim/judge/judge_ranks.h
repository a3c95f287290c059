#pragma once

// The judge's part about what ranks found out themselves: failed checks, tensors touched too early, roots
// outside of a group. And about calls that nobody waits for.

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// The first observation that is a mistake by itself; null when there is none. (Standing outside of a group is
// only a hint about others.)
const RankObservation* first_mistake(const Evidence& evidence);
// Joined ranks that updated parameters with gradients the others have replaced; null when there are none.
const RankObservation* first_stale_update(const Evidence& evidence);
// Ranks that have never waited for an asynchronous call; null when there are none.
const RankObservation* first_left_handle(const Evidence& evidence);
// The verdict about it, with all ranks that made the same one.
Verdict judge_observation(const Evidence& evidence, const RankObservation& first);

// Calls that somebody has made, that will never complete and that nobody waits for. Completed when there are
// none.
Verdict judge_open_calls(const Evidence& evidence);

}  // namespace rollcall::check
