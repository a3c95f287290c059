#include "scenarios/run/schedules.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rollcall::scenario {
namespace {

struct Tried {
  Report report;
  RankSet deciders;  // ranks that had something to decide
};

RankSet deciders_of(const Decisions& decisions) {
  RankSet ranks;
  for (const auto& [point, ways] : decisions.met()) {
    ranks.insert(point.rank);
  }
  return ranks;
}

// Every other way at every decision that comes after the plan's last deviation: so each set of deviations is
// planned once.
void plan_deviations(const Decisions::Plan& plan, const Decisions& decisions,
                     std::deque<Decisions::Plan>& plans) {
  const auto& met = decisions.met();
  auto next = plan.empty() ? met.begin() : met.upper_bound(plan.rbegin()->first);
  for (; next != met.end(); ++next) {
    for (std::size_t way = 1; way < next->second; ++way) {
      Decisions::Plan deviation = plan;
      deviation[next->first] = way;
      plans.push_back(std::move(deviation));
    }
  }
}

void count(const Verdict& verdict, std::vector<Outcome>& outcomes) {
  const Finding* finding = finding_of(verdict);
  const Outcome outcome{std::string(verdict_word(verdict)), finding != nullptr ? finding->kind : "", 0};
  const auto known = std::ranges::find_if(outcomes, [&](const Outcome& other) {
    return other.verdict == outcome.verdict && other.kind == outcome.kind;
  });
  (known == outcomes.end() ? outcomes.emplace_back(outcome) : *known).count += 1;
}

std::vector<Variant> variants_of(const Verdict& verdict) {
  if (const auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    return mismatch->variants;
  }
  if (const auto* wrong = std::get_if<WrongResult>(&verdict)) {
    return wrong->variants;
  }
  return {};
}

// What goes wrong in some schedules, as a race. All ranks that timing decides for are to blame: each of the
// ways is right, only their combination is not.
Race race_of(const Tried& tried, std::vector<Outcome> outcomes, std::int64_t schedules) {
  Race race;
  race.finding = *finding_of(tried.report.verdict);
  race.variants = variants_of(tried.report.verdict);
  std::int64_t good = 0;
  for (const Outcome& outcome : outcomes) {
    good += outcome.verdict == "ok" ? outcome.count : 0;
  }
  Finding& finding = race.finding;
  finding.headline = fmt::format("timing decides: {} of {} schedules go wrong; in one, {}", schedules - good,
                                 schedules, finding.headline);
  finding.cause =
      fmt::format("what {} {}, and in which order, is left to timing; then {}", ranks_phrase(tried.deciders),
                  tried.deciders.size() == 1 ? "does" : "do", finding.cause);
  finding.advice =
      "let the program order the two, or decide on one rank and tell the others before anybody acts on it";
  finding.culprits = tried.deciders;
  finding.tie = false;
  finding.suspects.clear();
  finding.suspicion.clear();
  race.outcomes = std::move(outcomes);
  return race;
}

}  // namespace

Report run_schedules(const RunOnce& run_once) {
  std::deque<Decisions::Plan> plans{{}};
  std::vector<Outcome> outcomes;
  std::optional<Tried> first;
  std::optional<Tried> first_wrong;
  std::int64_t schedules = 0;
  while (!plans.empty() && schedules < most_schedules) {
    const Decisions::Plan plan = std::move(plans.front());
    plans.pop_front();
    RunState state{Decisions(plan)};
    Report report = run_once(state);
    Tried tried{std::move(report), deciders_of(state.decisions)};
    ++schedules;
    count(tried.report.verdict, outcomes);
    plan_deviations(plan, state.decisions, plans);
    if (!first_wrong && finding_of(tried.report.verdict) != nullptr) {
      first_wrong = tried;
    }
    if (!first) {
      first = std::move(tried);
    }
  }
  const bool agree = std::ranges::all_of(
      outcomes, [&](const Outcome& outcome) { return outcome.verdict == outcomes.front().verdict; });
  Report report = agree ? std::move(first->report) : first_wrong->report;
  if (!agree) {
    report.verdict = race_of(*first_wrong, std::move(outcomes), schedules);
  }
  report.schedules = schedules;
  report.exhaustive = plans.empty();
  return report;
}

}  // namespace rollcall::scenario
