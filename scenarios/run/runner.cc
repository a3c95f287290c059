#include "scenarios/run/runner.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "scenarios/run/foresight.h"
#include "scenarios/run/interpreter.h"
#include "scenarios/run/schedules.h"
#include "sim/check/suspects.h"
#include "sim/engine/simulate.h"

namespace rollcall::scenario {
namespace {

// As a shell reads it back: quoted when it holds anything but the usual characters of a path.
std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%^";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
    return word;
  }
  std::string quoted = "'";
  for (char c : word) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace

Report run(const Scenario& scenario, const RunOptions& options) {
  sim::Options run_options = scenario.options;
  run_options.seed = options.seed.value_or(scenario.options.seed);
  run_options.timeline = options.timeline;
  Report report = run_schedules([&](RunState& state) {
    return sim::run(run_options, [&](Rank rank) { run_rank(scenario, rank, state); });
  });
  if (const std::vector<Rank> ranks = check::ranks_to_compare(report.verdict); !ranks.empty()) {
    check::order_suspects(report.verdict, foresee(scenario, ranks));
  }
  report.scenario = scenario.name;
  report.seed = run_options.seed;
  report.replay = fmt::format("rollcall run {} --seed {}", shell_word(scenario.file), run_options.seed);
  report.unmet = unmet(scenario.expect, report);
  report.expected = report.unmet.empty();
  return report;
}

}  // namespace rollcall::scenario
