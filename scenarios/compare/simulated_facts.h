#pragma once

#include "scenarios/compare/facts.h"
#include "scenarios/scenario.h"

namespace rollcall::compare {

// Runs the scenario in the simulator, with the log that a real rank keeps.
Facts simulated_facts(const scenario::Scenario& scenario);

}  // namespace rollcall::compare
