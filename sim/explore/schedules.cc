#include "sim/explore/schedules.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/explore/search_tree.h"
#include "sim/judge/suspects.h"

namespace rollcall::sim {
namespace {

// A plan makes the decisions that timing would make in a run. Every rank counts its own decisions, so a plan means the
// same in every run of a program.
class PlannedDecisions final : public DecisionLog {
 public:
  struct Point {
    Rank rank = 0;
    std::size_t index = 0;  // of this rank's decisions
    friend auto operator<=>(const Point&, const Point&) = default;
  };
  using Plan = std::map<Point, std::size_t>;  // the way to take; for other points, the first

  explicit PlannedDecisions(Plan plan) : DecisionLog(false, false), plan_(std::move(plan)) {}

  const Plan& plan() const { return plan_; }
  // The decisions that came up, with the number of ways each had.
  const std::map<Point, std::size_t>& taken() const { return taken_; }

 protected:
  std::size_t choose(const Decision& decision) override {
    const Point point{decision.rank, count_[decision.rank]++};
    taken_.emplace(point, decision.ways);
    const auto planned = plan_.find(point);
    // A plan made for a different run may ask for a way that does not exist.
    return planned == plan_.end() ? 0 : std::min(planned->second, decision.ways - 1);
  }

 private:
  Plan plan_;
  std::map<Point, std::size_t> taken_;
  std::map<Rank, std::size_t> count_;  // of decisions, by rank
};

using Plan = PlannedDecisions::Plan;

struct Tried {
  Report report;
  RankSet deciders;  // ranks that had a choice
  Schedule schedule;
};

// Plans every other way at every decision after the plan's last deviation, so that each set of deviations is
// planned once.
void plan_deviations(const PlannedDecisions& decisions, std::deque<Plan>& plans) {
  const Plan& plan = decisions.plan();
  const auto& taken = decisions.taken();
  auto next = plan.empty() ? taken.begin() : taken.upper_bound(plan.rbegin()->first);
  for (; next != taken.end(); ++next) {
    for (std::size_t way = 1; way < next->second; ++way) {
      Plan deviation = plan;
      deviation[next->first] = way;
      plans.push_back(std::move(deviation));
    }
  }
}

// Each decision is compared with all previous ones, so a loop on the store takes quadratic time.
constexpr std::size_t decisions_compared = 2'000;

// True if calls on the store and receives from any source went ahead in the usual order and another order could matter.
// If there are too many to compare, it could.
bool leaves_orders_open(const PlannedDecisions& decisions, const RunSchedule& run) {
  if (!decisions.has_kept_order()) {
    return false;
  }
  SearchTree tree(true, false, {.depth_max = decisions_compared});
  do {
    tree.restart();
    tree.begin();
    run(tree);
  } while (!tree.knows_all_shown());
  return tree.met(Decision::Kind::order) && (tree.is_bounded() || tree.advance());
}

}  // namespace

Race race_of(const Verdict& wrong, const RankSet& deciders, std::vector<Outcome> outcomes,
             std::int64_t schedules) {
  Race race;
  race.finding = *finding_of(wrong);
  if (const auto* mismatch = std::get_if<Mismatch>(&wrong)) {
    race.variants = mismatch->variants;
  } else if (const auto* result = std::get_if<WrongResult>(&wrong)) {
    race.variants = result->variants;
  }
  std::int64_t good = 0;
  for (const Outcome& outcome : outcomes) {
    good += outcome.verdict == "ok" ? outcome.count : 0;
  }
  Finding& finding = race.finding;
  finding.headline = fmt::format("timing decides: {} of {} schedules go wrong; in one, {}", schedules - good,
                                 schedules, finding.headline);
  finding.cause = fmt::format("timing decides what {} {}, and in which order; in one order, {}",
                              ranks_phrase(deciders), deciders.size() == 1 ? "does" : "do", finding.cause);
  finding.advice =
      "make the program enforce the order, or decide on one rank and tell the others before any of them acts "
      "on it";
  check::blame_alone(deciders, finding);
  race.outcomes = std::move(outcomes);
  return race;
}

bool agree(const std::vector<Outcome>& outcomes) {
  return std::ranges::all_of(
      outcomes, [&](const Outcome& outcome) { return outcome.verdict == outcomes.front().verdict; });
}

TriedSchedules run_schedules(const RunSchedule& run) {
  std::deque<Plan> plans{{}};
  std::vector<Outcome> outcomes;
  std::optional<Tried> first;
  std::optional<Tried> first_wrong;
  std::int64_t schedules = 0;
  bool leaves_open = false;
  while (!plans.empty() && schedules < schedules_max) {
    PlannedDecisions decisions(std::move(plans.front()));
    plans.pop_front();
    Report report = run(decisions);
    ++schedules;
    add({std::string(verdict_word(report.verdict)), kind_of(report.verdict), 1}, outcomes);
    plan_deviations(decisions, plans);
    Tried tried{std::move(report), decisions.deciders(), decisions.schedule()};
    if (!first_wrong && finding_of(tried.report.verdict) != nullptr) {
      first_wrong = tried;
    }
    leaves_open = leaves_open || decisions.was_ordered_by_clock() || decisions.has_let_overtake();
    if (!first) {
      first = std::move(tried);
      leaves_open = leaves_open || (decisions.has_drawn_delays() && decisions.has_looked_at_clock()) ||
                    leaves_orders_open(decisions, run);
    }
  }
  TriedSchedules tried;
  if (agree(outcomes)) {
    tried.report = std::move(first->report);
  } else {
    tried.report = std::move(first_wrong->report);
    tried.report.verdict =
        race_of(tried.report.verdict, first_wrong->deciders, std::move(outcomes), schedules);
    tried.schedule = std::move(first_wrong->schedule);
  }
  tried.report.schedules = schedules;
  tried.report.exhaustive = plans.empty() && !leaves_open;
  return tried;
}

}  // namespace rollcall::sim
