#pragma once

// What commands that make pages share: reading the runs on them.

#include <string>
#include <vector>

#include "scenarios/compare/claims.h"
#include "scenarios/compare/simulated_facts.h"
#include "sim/report/report.h"
#include "viz/html/html_comparison.h"

namespace rollcall::cli {

class Progress;

// A run as it was, from a JSON report, or as it is now, from a scenario; and with its calls as facts. Both throw
// InvalidScenario, and UsageError for a scenario that is too large for this machine.
Report load_report(const std::string& path, Progress& progress);
compare::SimulatedRun load_run(const std::string& path, Progress& progress);

std::vector<viz::ComparedFact> compared_facts(const std::vector<compare::Claim>& claims);

}  // namespace rollcall::cli
