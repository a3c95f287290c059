#pragma once

// Runs a scenario on real ranks. The interpreter is the simulator's: it does not depend on what a rank is.

#include <optional>
#include <string>

#include "real/launch/launch.h"
#include "scenarios/format/scenario.h"

namespace rollcall::scenario {

struct RealRunOptions {
  std::string backend = "auto";  // "gloo", "nccl"
  Duration deadline = 10 * second;
  double time_scale = 1;  // real seconds per second that the program computes
  bool timeline = false;
};

// Throws what real::run throws. `scenario` must have been loaded for the backend that will run it.
real::Run run_real(const Scenario& scenario, const RealRunOptions& options = {});

// Runs it as one rank of a job that a launcher started: see real::run_launched.
std::optional<real::Run> run_launched(const Scenario& scenario, const RealRunOptions& options,
                                      const real::LaunchedRank& launched);

}  // namespace rollcall::scenario
