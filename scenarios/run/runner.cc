#include "scenarios/run/runner.h"

#include <fmt/format.h>

#include "scenarios/run/foresight.h"
#include "scenarios/run/interpreter.h"
#include "scenarios/run/schedules.h"
#include "scenarios/run/shell_word.h"
#include "sim/check/suspects.h"
#include "sim/engine/simulate.h"

namespace rollcall::scenario {

void complete_report(const Scenario& scenario, Report& report) {
  if (const std::vector<Rank> ranks = check::ranks_to_compare(report.verdict); !ranks.empty()) {
    check::order_suspects(report.verdict, foresee(scenario, ranks));
  }
  report.scenario = scenario.name;
  report.unmet = unmet(scenario.expect, report);
  report.expected = report.unmet.empty();
}

Report run(const Scenario& scenario, const RunOptions& options) {
  sim::Options run_options = scenario.options;
  run_options.seed = options.seed.value_or(scenario.options.seed);
  run_options.timeline = options.timeline;
  run_options.decorate = options.decorate;
  Report report = run_schedules([&](RunState& state) {
    return sim::run(run_options, [&](Rank rank) { run_rank(scenario, rank, state); });
  });
  report.seed = run_options.seed;
  report.replay = fmt::format("rollcall run {} --seed {}", shell_word(scenario.file), run_options.seed);
  complete_report(scenario, report);
  return report;
}

}  // namespace rollcall::scenario
