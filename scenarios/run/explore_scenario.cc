#include "scenarios/run/explore_scenario.h"

#include <algorithm>
#include <utility>

#include "scenarios/run/race.h"
#include "scenarios/run/runner.h"

namespace rollcall::scenario {
namespace {

using sim::Ending;
using sim::Exploration;

bool has_schedule(const Ending& ending) { return ending.schedule.decisions > 0; }

std::string replay_of(const Scenario& scenario, std::uint64_t seed, const Ending& ending) {
  return replay_line(scenario, seed, has_schedule(ending) ? &ending.schedule : nullptr);
}

SearchResult result_of(const Scenario& scenario, std::uint64_t seed, const Exploration& found) {
  SearchResult result;
  result.outcomes = found.tally.outcomes();
  for (const Ending& ending : found.tally.endings()) {
    if (const Finding* finding = finding_of(ending.report.verdict)) {
      result.failures.push_back({ending.verdict, ending.kind, finding->headline, finding->culprits,
                                 ending.count, replay_of(scenario, seed, ending)});
    }
  }
  result.distinct = found.tally.distinct();
  result.cut = found.tally.cut();
  result.space = found.tally.space();
  result.bounds = found.bounds;
  result.interrupted = found.interrupted;
  return result;
}

// Without decisions of ranks, a usual run that fails fails for reasons of its own.
bool is_race(const Exploration& found, const SearchResult& result) {
  return !agree(result.outcomes) && (found.ranks_decide || found.tally.endings().front().is_ok());
}

}  // namespace

Report explore(const Scenario& scenario, const ExploreScenarioOptions& options) {
  sim::Options run_options = scenario.options;
  run_options.seed = options.seed.value_or(scenario.options.seed);
  const Exploration found = sim::explore(
      [&](sim::Decisions& decisions) { return run_once(scenario, run_options, decisions); }, options.search);
  SearchResult result = result_of(scenario, run_options.seed, found);
  if (found.tally.endings().empty()) {
    Report nothing;
    nothing.scenario = scenario.name;
    nothing.exhaustive = false;
    nothing.schedules = 0;
    nothing.search = std::move(result);
    return nothing;
  }
  const Ending* failure = found.tally.first_failure();
  const Ending& shown = failure != nullptr ? *failure : found.tally.endings().front();
  Report report = shown.report;
  if (is_race(found, result)) {
    report.verdict = race_of(shown.report.verdict, shown.deciders, result.outcomes, found.tally.schedules());
  }
  report.seed = run_options.seed;
  report.schedules = found.tally.schedules();
  report.exhaustive = found.exhaustive;
  report.replay = replay_of(scenario, run_options.seed, shown);
  report.search = std::move(result);
  complete_report(scenario, report);
  return report;
}

}  // namespace rollcall::scenario
