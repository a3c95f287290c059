#include "scenarios/run/explore_scenario.h"

#include "scenarios/run/runner.h"
#include "scenarios/run/source_lines.h"
#include "sim/explore/explore.h"
#include "sim/judge/complete.h"

namespace rollcall::scenario {

Report explore(const Scenario& scenario, const ExploreScenarioOptions& options) {
  sim::Options run_options = scenario.options;
  run_options.seed = options.seed.value_or(scenario.options.seed);
  run_options.timeline = scenario.expect.needs_timeline();
  const sim::Exploration found = sim::explore(
      [&](sim::Decisions& decisions) { return run_once(scenario, run_options, decisions); }, options.search);
  Report report = sim::report_of(found, [&](const sim::Schedule* schedule) {
    return replay_line(scenario, run_options.seed, schedule);
  });
  if (found.tally.endings().empty()) {
    report.scenario = scenario.name;
    report.world_size = scenario.options.world_size;
    return report;
  }
  report.seed = run_options.seed;
  check::complete(report, rehearsal_of(scenario));
  hold_against(scenario, report);
  read_sources(report, scenario.file);
  return report;
}

}  // namespace rollcall::scenario
