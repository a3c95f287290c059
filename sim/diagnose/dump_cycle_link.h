#pragma once

// Wait cycles and their weakest link.

#include <vector>

#include "sim/diagnose/dump_case.h"

namespace rollcall::check {

// Of the calls of a cycle without which there would be none, the one that fewer ranks hold up than any
// other: those few are enough for it. Among equals that of the narrower group, which is used within a step,
// the wider at its end. Null when none stands out, as where groups are crossed, and in jobs of many nodes.
const WaitNode* node_held_by_fewest(const DumpCase& job, const std::vector<const WaitNode*>& cycle);

}  // namespace rollcall::check
