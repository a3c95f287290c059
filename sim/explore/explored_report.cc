// Turns a search through the schedules of a program into a report: part of explore.h.

#include <utility>

#include "sim/explore/explore.h"

namespace rollcall::sim {
namespace {

bool has_schedule(const Ending& ending) { return ending.schedule.decisions > 0; }

std::string replay_of(const Ending& ending, const ReplayLine& replay) {
  return replay(has_schedule(ending) ? &ending.schedule : nullptr);
}

SearchResult result_of(const Exploration& found, const ReplayLine& replay) {
  SearchResult result;
  result.outcomes = found.tally.outcomes();
  for (const Ending& ending : found.tally.endings()) {
    if (const Finding* finding = finding_of(ending.report.verdict)) {
      result.failures.push_back({ending.verdict, ending.kind, finding->headline, finding->culprits,
                                 ending.count, replay_of(ending, replay)});
    }
  }
  result.distinct = found.tally.distinct();
  result.cut = found.tally.cut();
  result.space = found.tally.space();
  result.bounds = found.bounds;
  result.interrupted = found.interrupted;
  // If ranks make no decisions and the usual run fails, timing is not the reason.
  const std::vector<Ending>& endings = found.tally.endings();
  result.differences_are_races =
      found.ranks_decide || found.is_usual_ok.value_or(!endings.empty() && endings.front().is_ok());
  return result;
}

}  // namespace

Report report_of(const Exploration& found, const ReplayLine& replay) {
  SearchResult result = result_of(found, replay);
  if (found.tally.endings().empty()) {
    Report nothing;
    nothing.exhaustive = false;
    nothing.schedules = 0;
    nothing.search = std::move(result);
    return nothing;
  }
  const Ending* failure = found.tally.first_failure();
  const Ending& shown = failure != nullptr ? *failure : found.tally.endings().front();
  Report report = shown.report;
  if (result.differences_are_races && !agree(result.outcomes)) {
    report.verdict = race_of(shown.report.verdict, shown.deciders, result.outcomes, found.tally.schedules());
  }
  report.schedules = found.tally.schedules();
  report.exhaustive = found.exhaustive;
  report.replay = replay_of(shown, replay);
  report.search = std::move(result);
  return report;
}

Report explore(const Options& options, const Program& program, const ExploreOptions& search) {
  const auto run = [&](Decisions& decisions) {
    Options own = options;
    own.decisions = &decisions;
    return run_once(own, program);
  };
  const auto replay = [](const Schedule* schedule) {
    return schedule == nullptr ? std::string() : to_text(*schedule);
  };
  Report report = report_of(explore(run, search), replay);
  complete(report, options, program);
  return report;
}

}  // namespace rollcall::sim
