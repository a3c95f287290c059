#pragma once

// Explores the schedules of a scenario: the ways in which timing could decide other than in the
// usual run.

#include "scenarios/format/scenario.h"
#include "sim/explore/explore.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct ExploreScenarioOptions {
  sim::ExploreOptions search{};
  std::optional<std::uint64_t> seed{};  // of the run; instead of the scenario's
};

// Returns sim::report_of the search, completed and compared with what the scenario expects.
Report explore(const Scenario& scenario, const ExploreScenarioOptions& options);

}  // namespace rollcall::scenario
