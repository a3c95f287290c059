#pragma once

// The judge's part about what ranks observed themselves: failed checks, tensors touched too early, roots
// outside a group. Also about calls that no rank waits for.

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// The first observation that is a mistake in itself; null if there is none. (A call on a group that the rank is not in
// is only a hint about other mistakes.)
const RankObservation* first_mistake(const Evidence& evidence);
// The first joined rank that updated parameters with gradients that the others have replaced; null if there is none.
const RankObservation* first_stale_update(const Evidence& evidence);
// The first rank that never waited for an asynchronous call; null if there is none.
const RankObservation* first_left_handle(const Evidence& evidence);
// The verdict about an observation, with all ranks that made the same mistake.
Verdict judge_observation(const Evidence& evidence, const RankObservation& first);

// For calls that will never complete and that no rank waits for. Returns Completed if there are none.
Verdict judge_open_calls(const Evidence& evidence);

}  // namespace rollcall::check
