#pragma once

// Turns a search through the schedules of a program into a report.

#include <functional>
#include <string>

#include "sim/explore/explore.h"
#include "sim/report/report.h"

namespace rollcall::sim {

// The command that repeats a run under this schedule; null: the usual one.
using ReplayLine = std::function<std::string(const Schedule* schedule)>;

// The report of the first schedule that fails, or of the usual one if none does, with a `search`; not completed yet
// (sim/judge/complete.h). If schedules end with different verdicts and the usual one is ok, or ranks make decisions
// of their own, the verdict is a race with that schedule's evidence.
Report report_of(const Exploration& found, const ReplayLine& replay);

}  // namespace rollcall::sim
