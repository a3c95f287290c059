#pragma once

// Tries the schedules of a program that leaves something to timing, a bounded number of them, and says
// whether they come to the same.

#include <functional>
#include <optional>

#include "sim/explore/schedule.h"
#include "sim/report/report.h"

namespace rollcall::sim {

inline constexpr std::int64_t schedules_max = 256;

// Runs the program once, with these decisions.
using RunSchedule = std::function<Report(Decisions& decisions)>;

struct TriedSchedules {
  // Of the schedule in which every decision takes the first way, if all tried schedules have the same verdict;
  // otherwise a race, with the evidence of the first schedule that goes wrong.
  Report report;
  std::optional<Schedule> schedule;  // a race: the one that goes wrong
};

// Schedules with few deviations come first.
TriedSchedules run_schedules(const RunSchedule& run);

}  // namespace rollcall::sim
