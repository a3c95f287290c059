#pragma once

// Shared by the commands on real ranks.

#include <string>

#include "scenarios/cli/cli.h"
#include "scenarios/run/real_run.h"

namespace rollcall::cli {

// The scenario to run on real ranks, and the backend that it was written for.
struct RealScenario {
  scenario::Scenario scenario;
  scenario::RealRunOptions options;
  std::string written_for;  // the backend that the file names
};

// Loads it for `ranks` ranks, or as many as the file says. Throws UsageError, InvalidScenario, and real::Unavailable if
// the machine cannot run the backend.
RealScenario load_for_real_ranks(const CommandLine& line, std::optional<Rank> ranks);

// Remarks on what the real run cannot show, such as debug levels that it does not have.
void remark_on_limits(const CommandLine& line, const RealScenario& loaded);

}  // namespace rollcall::cli
