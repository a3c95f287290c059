#pragma once

// Tries the schedules of a scenario that leaves something to timing, a bounded number of them, and says
// whether they come to the same.

#include <functional>

#include "scenarios/run/run_state.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

inline constexpr std::int64_t most_schedules = 256;

// Runs the scenario once, with the decisions of `state`.
using RunOnce = std::function<Report(RunState& state)>;

// The report of the schedule in which every decision takes the first way, if all schedules that were tried
// come to the same verdict; otherwise a race, with the evidence of the first schedule that goes wrong.
// Schedules with few deviations come first.
Report run_schedules(const RunOnce& run_once);

}  // namespace rollcall::scenario
