#pragma once

// Excuses: reasons why differing claims say nothing about the simulator. One run of real ranks is one of many that the
// program can have, and shows less than a simulation; what it cannot show counts against neither side.

#include <vector>

#include "scenarios/compare/claims.h"

namespace rollcall::compare {

// Turns differences that have an excuse into claims that cannot be judged, with the reason. `claims` are those of
// compare(), in its order.
void excuse_differences(const Facts& simulated, const Facts& real, std::vector<Claim>& claims);

}  // namespace rollcall::compare
