#pragma once

// RunState: what the ranks of one run share besides the scenario.

#include "scenarios/run/contributions.h"
#include "scenarios/run/decisions.h"

namespace rollcall::scenario {

struct RunState {
  Decisions decisions{};
  Contributions contributions{};
};

}  // namespace rollcall::scenario
