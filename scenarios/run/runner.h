#pragma once

// Runs a scenario on the simulator and reports whether the outcome is the expected one.

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

// Thrown if the schedule belongs to another program, or to an earlier version of this one; what() says where they
// diverge.
struct ScheduleDoesNotFit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws ScheduleDoesNotFit.
Report run(const Scenario& scenario, const RunOptions& options = {});

// Makes one run with these decisions and judges it, nothing more. `options` are the scenario's, or derived from them.
Report run_once(const Scenario& scenario, const sim::Options& options, sim::Decisions& decisions);

// The command that repeats a run; `schedule` may be null.
std::string replay_line(const Scenario& scenario, std::uint64_t seed, const sim::Schedule* schedule);

// Lets check::complete run the scenario again. Borrows the scenario.
sim::Rehearsal rehearsal_of(const Scenario& scenario, bool tries_repairs = true);

// Adds to a completed report what only the scenario knows: its name, how much of a GPU its objects take, and whether
// the outcome is the expected one.
void hold_against(const Scenario& scenario, Report& report);

}  // namespace rollcall::scenario
