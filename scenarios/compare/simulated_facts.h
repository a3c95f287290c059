#pragma once

#include "scenarios/compare/facts.h"
#include "scenarios/format/scenario.h"
#include "sim/engine/simulate.h"

namespace rollcall::compare {

struct SimulatedRun {
  Facts facts;
  Report report;
};

// Runs the scenario in the simulator, with the log that a real rank keeps.
SimulatedRun simulate(const scenario::Scenario& scenario, bool timeline = false);

// The same for a program in C++.
Facts simulated_facts(sim::Options options, const sim::Program& program);

}  // namespace rollcall::compare
