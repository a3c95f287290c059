#pragma once

// Explores the schedules of a scenario: what timing could decide otherwise than in the usual run.

#include "scenarios/format/scenario.h"
#include "sim/explore/explore.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct ExploreScenarioOptions {
  sim::ExploreOptions search{};
  std::optional<std::uint64_t> seed{};  // of the run; instead of the scenario's
};

// The report of the first schedule that fails, or of the usual one if none does, with a `search`. Where schedules
// have different verdicts and the default one is ok, or a rank's own decision makes the difference, the verdict is a
// race with that schedule's evidence.
Report explore(const Scenario& scenario, const ExploreScenarioOptions& options);

}  // namespace rollcall::scenario
