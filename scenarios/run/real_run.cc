#include "scenarios/run/real_run.h"

#include <fmt/core.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/real_faults.h"
#include "scenarios/run/run_state.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/shell_word.h"
#include "scenarios/run/source_lines.h"
#include "sim/engine/start_order.h"

namespace rollcall::scenario {
namespace {

real::Options real_options(const Scenario& scenario, const RealRunOptions& options,
                           const check::Outlook& outlook) {
  const sim::Options& simulated = scenario.options;
  real::Options real{.world_size = simulated.world_size,
                     .backend = options.backend,
                     .torch = simulated.torch,
                     .gpus_per_host = simulated.ranks_per_host,
                     .deadline = options.deadline,
                     .timeout = simulated.timeout,
                     .eager_communicators = simulated.eager_communicators,
                     .finished_ranks_exit = simulated.finished_ranks_exit,
                     .time_scale = options.time_scale,
                     .ops = simulated.limits.ops,
                     .timeline = options.timeline || scenario.expect.needs_timeline(),
                     .check_leaks = simulated.check_leaks,
                     .samples = simulated.samples,
                     .outlook = &outlook,
                     .decorate = real_faults(scenario, options.time_scale)};
  for (Rank rank = 0; rank < simulated.world_size; ++rank) {
    real.devices.push_back(sim::device_of_rank(simulated, rank));
  }
  for (const sim::Group& group : simulated.groups) {
    real.groups.push_back({group.name, group.ranks});
  }
  return real;
}

real::Program program_of(const Scenario& scenario) {
  return [&scenario](Rank rank) {
    // Decisions take the usual way: the simulator tries the others.
    RunState own{.seed = scenario.options.seed};
    run_rank(scenario, rank, own);
  };
}

void finish(const Scenario& scenario, const RealRunOptions& options, Report& report) {
  const RealRunOptions usual;
  report.replay = fmt::format("rollcall real {} --backend {} --ranks {}", shell_word(scenario.address()),
                              report.backend, report.world_size);
  if (options.deadline != usual.deadline) {
    report.replay += options.deadline % millisecond == 0
                         ? fmt::format(" --deadline {}ms", options.deadline / millisecond)
                         : fmt::format(" --deadline {}ns", options.deadline);
  }
  if (options.time_scale != usual.time_scale) {
    report.replay += fmt::format(" --time-scale {}", options.time_scale);
  }
  hold_against(scenario, report);
  read_sources(report, scenario.file);
}

}  // namespace

real::Run run_real(const Scenario& scenario, const RealRunOptions& options) {
  const sim::Rehearsal outlook = rehearsal_of(scenario);
  real::Run run = real::run(real_options(scenario, options, outlook), program_of(scenario));
  finish(scenario, options, run.report);
  return run;
}

std::optional<real::Run> run_launched(const Scenario& scenario, const RealRunOptions& options,
                                      const real::LaunchedRank& launched) {
  const sim::Rehearsal outlook = rehearsal_of(scenario);
  std::optional<real::Run> run =
      real::run_launched(real_options(scenario, options, outlook), program_of(scenario), launched);
  if (run) {
    finish(scenario, options, run->report);
  }
  return run;
}

}  // namespace rollcall::scenario
