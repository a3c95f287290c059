#pragma once

// Runs a scenario on the simulator and says whether it came out as expected.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "scenarios/scenario.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct RunOptions {
  std::optional<std::uint64_t> seed{};  // instead of the scenario's
  bool timeline = false;
  std::function<std::unique_ptr<Backend>(Backend&)> decorate{};  // as in sim::Options
};

Report run(const Scenario& scenario, const RunOptions& options = {});

// What a report of the scenario says besides how its ranks ran: its name, who is most suspect where several
// are, and whether it came out as expected.
void complete_report(const Scenario& scenario, Report& report);

}  // namespace rollcall::scenario
