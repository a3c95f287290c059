#include "scenarios/run/runner.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "scenarios/run/foresight.h"
#include "scenarios/run/golden.h"
#include "scenarios/run/hook_diff.h"
#include "scenarios/run/interpreter.h"
#include "scenarios/run/order_warning.h"
#include "scenarios/run/schedules.h"
#include "scenarios/run/shell_word.h"
#include "sim/engine/simulate.h"
#include "sim/explore/replay.h"
#include "sim/judge/judge_samples.h"
#include "sim/judge/suspects.h"
#include "sim/judge/wrong_peer.h"

namespace rollcall::scenario {

namespace {

constexpr Rank foreseen_max = 256;  // ranks whose programs are compared with all others'

// The line of the statement that raised first, for whoever has to fix it.
void say_where_raised(const RunState& state, Verdict& verdict) {
  Finding* finding = finding_of(verdict);
  const bool is_failure = std::holds_alternative<RankFailed>(verdict);
  if (finding == nullptr || (!is_failure && finding->kind != FindingKind::rank_crashed) ||
      finding->culprits.empty()) {
    return;
  }
  const auto found = state.raised_at.find(finding->culprits.first());
  if (found == state.raised_at.end()) {
    return;
  }
  const std::string site = to_string(found->second);
  finding->cause += fmt::format("; it was raised at {}", site);
  if (is_failure) {
    Call call;
    call.op = "raise";
    call.site = site;
    finding->at = Place{call, {}, {}};
  }
}

TriedSchedules replay(const sim::Schedule& schedule, const RunOnce& once) {
  sim::Replay decisions(schedule);
  TriedSchedules tried{once(decisions), schedule};
  if (const std::optional<std::string> divergence = decisions.divergence()) {
    throw ScheduleDoesNotFit(
        fmt::format("the schedule no longer fits: {}. Explore the scenario again", *divergence));
  }
  tried.report.exhaustive = decisions.schedule().decisions == 0;
  return tried;
}

}  // namespace

void complete_report(const Scenario& scenario, Report& report) {
  if (const std::vector<Rank> ranks = check::ranks_to_compare(report.verdict); !ranks.empty()) {
    check::order_suspects(report.verdict, foresee(scenario, ranks));
  }
  if (report.world_size <= foreseen_max && check::has_stuck_messages(report.verdict)) {
    std::vector<Rank> everyone(static_cast<std::size_t>(report.world_size));
    std::iota(everyone.begin(), everyone.end(), 0);
    check::find_wrong_peer(report.verdict, foresee(scenario, everyone));
  }
  add_hook_diff(scenario, report.verdict);
  report.scenario = scenario.name;
  report.samples = scenario.inputs.samples;
  if (report.samples && std::holds_alternative<Completed>(report.verdict)) {
    report.verdict =
        check::judge_samples(*report.samples, scenario.inputs.sampler_seeds).value_or(report.verdict);
  }
  for (const auto& [index, object] : scenario.program->training.data_parallel) {
    report.memory.push_back({object.name, data_parallel_memory(object.options)});
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
  Report report = sim::run(own, [&](Rank rank) { run_rank(scenario, rank, state); });
  say_where_raised(state, report.verdict);
  report.values = state.watched.values();
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
  TriedSchedules tried = options.schedule ? replay(*options.schedule, once) : run_schedules(once);
  Report& report = tried.report;
  report.seed = run_options.seed;
  report.replay = replay_line(scenario, run_options.seed, tried.schedule ? &*tried.schedule : nullptr);
  warn_about_order(scenario, report);
  complete_report(scenario, report);
  return std::move(report);
}

}  // namespace rollcall::scenario
