#pragma once

// Runs a scenario on the simulator and says whether it came out as expected.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "scenarios/format/scenario.h"
#include "sim/engine/rehearsal.h"
#include "sim/explore/schedule.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct RunOptions {
  std::optional<std::uint64_t> seed{};  // instead of the scenario's
  bool timeline = false;
  std::function<std::unique_ptr<Backend>(Backend&)> decorate{};  // as in sim::Options
  std::optional<sim::Schedule> schedule{};                       // only this one, exactly
  bool tries_repairs = true;                                     // as in sim::Options
};

// The schedule is of another program, or of this one before it was changed; what() says where they part.
struct ScheduleDoesNotFit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws ScheduleDoesNotFit.
Report run(const Scenario& scenario, const RunOptions& options = {});

// One run, with these decisions, judged and nothing more. `options` are the scenario's, or made of them.
Report run_once(const Scenario& scenario, const sim::Options& options, sim::Decisions& decisions);

// The command that repeats a run; `schedule` may be null.
std::string replay_line(const Scenario& scenario, std::uint64_t seed, const sim::Schedule* schedule);

// The scenario run again, for check::complete. Borrows the scenario.
sim::Rehearsal rehearsal_of(const Scenario& scenario, bool tries_repairs = true);

// Adds what only a scenario knows to a completed report: its name, what its objects take of a GPU, and whether it came
// out as expected.
void hold_against(const Scenario& scenario, Report& report);

}  // namespace rollcall::scenario
