#pragma once

// Tries a bounded number of the schedules of a program that leaves something to timing, and says
// whether they have the same outcome.

#include <functional>
#include <optional>
#include <vector>

#include "sim/explore/schedule.h"
#include "sim/report/report.h"

namespace rollcall::sim {

inline constexpr std::int64_t schedules_max = 256;

// Runs the program once, with these decisions.
using RunSchedule = std::function<Report(Decisions& decisions)>;

struct TriedSchedules {
  // The report of the schedule in which every decision takes the first way, if all tried schedules have the same
  // verdict; otherwise a race, with the evidence of the first schedule that fails.
  Report report;
  std::optional<Schedule> schedule;  // of a race: the one that fails
};

// Schedules with few deviations come first.
TriedSchedules run_schedules(const RunSchedule& run);

// The failure of some schedules, as a race. `wrong`: the verdict of the first one that fails. `deciders`: the ranks
// that had a choice in it, or whose calls came in one of several orders. All of them are to blame: each way is right,
// only their combination is not.
Race race_of(const Verdict& wrong, const RankSet& deciders, std::vector<Outcome> outcomes,
             std::int64_t schedules);

// True if all outcomes have the same verdict, of any kind.
bool agree(const std::vector<Outcome>& outcomes);

}  // namespace rollcall::sim
