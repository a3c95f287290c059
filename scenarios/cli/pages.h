#pragma once

// Reads the runs that pages show, for the commands that make pages.

#include <string>
#include <vector>

#include "scenarios/compare/claims.h"
#include "scenarios/compare/simulated_facts.h"
#include "sim/report/report.h"
#include "viz/html/html_comparison.h"

namespace rollcall::cli {

class Progress;

// Returns a run as it was, from a JSON report, or as it is now, from a scenario; load_run adds its calls as facts. Both
// throw InvalidScenario, and UsageError for a scenario that is too large for this machine.
Report load_report(const std::string& path, Progress& progress);
compare::SimulatedRun load_run(const std::string& path, Progress& progress);

std::vector<viz::ComparedFact> compared_facts(const std::vector<compare::Claim>& claims);

}  // namespace rollcall::cli
