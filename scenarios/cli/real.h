#pragma once

// What the commands on real ranks share.

#include <string>

#include "scenarios/cli/cli.h"
#include "scenarios/run/real_run.h"

namespace rollcall::cli {

// The scenario as it is to run on real ranks, and what it was written for.
struct RealScenario {
  scenario::Scenario scenario;
  scenario::RealRunOptions options;
  std::string written_for;  // the backend that the file names
};

// At `ranks` ranks, or as many as the file says. Throws UsageError, InvalidScenario, and real::Unavailable when
// the machine cannot run the backend.
RealScenario load_for_real_ranks(const CommandLine& line, std::optional<Rank> ranks);

// Remarks on what the real run cannot show: debug levels it does not have, and the like.
void remark_on_limits(const CommandLine& line, const RealScenario& loaded);

}  // namespace rollcall::cli
