#include "scenarios/run/runner.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "scenarios/run/golden.h"
#include "scenarios/run/interpreter.h"
#include "scenarios/run/shell_word.h"
#include "scenarios/run/source_lines.h"
#include "sim/engine/simulate.h"
#include "sim/explore/replay.h"
#include "sim/explore/schedules.h"
#include "sim/judge/complete.h"
#include "sim/judge/open_ends.h"
#include "sim/wording/wording.h"

namespace rollcall::scenario {

namespace {

sim::TriedSchedules replay(const sim::Schedule& schedule, const sim::RunSchedule& once) {
  sim::Replay decisions(schedule);
  sim::TriedSchedules tried{once(decisions), schedule};
  if (const std::optional<std::string> divergence = decisions.divergence()) {
    throw ScheduleDoesNotFit(
        fmt::format("the schedule no longer fits: {}. Explore the scenario again", *divergence));
  }
  tried.report.exhaustive = decisions.schedule().decisions == 0;
  return tried;
}

// True if the verdict rests on calls that these ranks might still have made.
bool depends_on(const RankSet& open, const Verdict& verdict) {
  const bool may_depend = std::holds_alternative<Completed>(verdict) ||
                          std::holds_alternative<Deadlock>(verdict) ||
                          std::holds_alternative<ResourceLeak>(verdict);
  const Finding* finding = finding_of(verdict);
  if (!may_depend || finding == nullptr) {
    return may_depend;
  }
  RankSet missing = finding->culprits;
  if (finding->at) {
    missing.insert(finding->at->missing);
  }
  return missing.empty() || missing.meets(open);
}

// Ranks of a recording that was interrupted, or that stood still, come to the end of their programs, not of their work.
void spare_open_ends(const Scenario& scenario, Report& report) {
  const RankSet open = check::ranks_at_open_ends(report, scenario.options.open_ends);
  if (open.empty() || !depends_on(open, report.verdict)) {
    return;
  }
  std::vector<RankClass> ranks;
  for (RankClass& known : report.ranks) {
    const RankSet others = difference(known.ranks, open);
    const bool has_open = known.state == RankClass::State::finished && known.ranks.meets(open);
    if (has_open) {
      ranks.push_back(known);
      ranks.back().ranks = intersection(known.ranks, open);
      ranks.back().state = RankClass::State::running;
    }
    if (!has_open || !others.empty()) {
      ranks.push_back(std::move(known));
      ranks.back().ranks = has_open ? others : ranks.back().ranks;
    }
  }
  std::ranges::sort(ranks, {}, [](const RankClass& each) { return each.ranks.first(); });
  report.ranks = std::move(ranks);
  LimitReached cut;
  const bool stood_still = !open.meets(scenario.interrupted);
  cut.finding.kind = stood_still ? FindingKind::stalled : FindingKind::interrupted;
  cut.value = static_cast<std::int64_t>(stood_still ? open.size() : scenario.interrupted.size());
  check::word_limit({cut.finding.kind, cut.value}, cut.finding);
  report.verdict = std::move(cut);
}

}  // namespace

sim::Rehearsal rehearsal_of(const Scenario& scenario, bool tries_repairs) {
  sim::Options options = scenario.options;
  options.tries_repairs = tries_repairs;
  return {options,
          [&scenario, state = std::make_shared<RunState>()](Rank rank) { run_rank(scenario, rank, *state); }};
}

void hold_against(const Scenario& scenario, Report& report) {
  report.scenario = scenario.name;
  for (const ObjectSpec& object : scenario.program->objects) {
    if (const auto* const model = std::get_if<DataParallelObject>(&object.kind)) {
      report.memory.push_back({object.name, data_parallel_memory(model->options)});
    }
  }
  report.unmet = unmet(scenario.expect, report);
  if (const std::string golden = golden_file(scenario); !golden.empty()) {
    std::vector<std::string> differences = compare_golden(golden, report);
    std::ranges::move(differences, std::back_inserter(report.unmet));
  }
  report.expected = report.unmet.empty();
}

Report run_once(const Scenario& scenario, const sim::Options& options, sim::Decisions& decisions) {
  sim::Options own = options;
  own.decisions = &decisions;
  RunState state{.decisions = &decisions, .seed = options.seed};
  Report report = sim::run_once(own, [&](Rank rank) { run_rank(scenario, rank, state); });
  report.values = state.watched.values();
  spare_open_ends(scenario, report);
  return report;
}

std::string replay_line(const Scenario& scenario, std::uint64_t seed, const sim::Schedule* schedule) {
  std::string line = fmt::format("rollcall run {} --seed {}", shell_word(scenario.address()), seed);
  return schedule == nullptr ? line : line + " --schedule " + sim::to_text(*schedule);
}

Report run(const Scenario& scenario, const RunOptions& options) {
  sim::Options run_options = scenario.options;
  run_options.seed = options.seed.value_or(scenario.options.seed);
  run_options.timeline = options.timeline || scenario.expect.needs_timeline();
  run_options.decorate = options.decorate;
  const auto once = [&](sim::Decisions& decisions) { return run_once(scenario, run_options, decisions); };
  sim::TriedSchedules tried = options.schedule ? replay(*options.schedule, once) : sim::run_schedules(once);
  Report& report = tried.report;
  report.seed = run_options.seed;
  report.replay = replay_line(scenario, run_options.seed, tried.schedule ? &*tried.schedule : nullptr);
  check::complete(report, rehearsal_of(scenario, options.tries_repairs));
  hold_against(scenario, report);
  read_sources(report, scenario.file);
  return std::move(report);
}

}  // namespace rollcall::scenario
