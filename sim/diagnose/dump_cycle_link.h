#pragma once

// Wait cycles and their weakest link.

#include <vector>

#include "sim/diagnose/dump_case.h"

namespace rollcall::check {

// Of the calls without which the cycle would not exist, returns the one that the fewest ranks hold up: those
// few are enough to cause it. On a tie, the call of the narrower group, because narrow groups are used within a
// step and wide ones at its end. Null if none stands out, as when groups are crossed, and if the cycle has many
// calls.
const WaitNode* node_held_by_fewest(const DumpCase& job, const std::vector<const WaitNode*>& cycle);

}  // namespace rollcall::check
