#pragma once

// Runs a scenario on the simulator and says whether it came out as expected.

#include <cstdint>
#include <optional>

#include "scenarios/scenario.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct RunOptions {
  std::optional<std::uint64_t> seed{};  // instead of the scenario's
  bool timeline = false;
};

Report run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace rollcall::scenario
