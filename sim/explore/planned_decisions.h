#pragma once

// PlannedDecisions: a plan makes the decisions that timing would make in a run. Every rank counts its own decisions, so
// a plan means the same in every run of a program.

#include <cstddef>
#include <map>
#include <utility>

#include "sim/explore/decision_log.h"

namespace rollcall::sim {

class PlannedDecisions final : public DecisionLog {
 public:
  struct Point {
    Rank rank = 0;
    std::size_t index = 0;  // of this rank's decisions
    friend auto operator<=>(const Point&, const Point&) = default;
  };
  using Plan = std::map<Point, std::size_t>;  // the way to take; for other points, the first

  explicit PlannedDecisions(Plan plan = {}) : DecisionLog(false, false), plan_(std::move(plan)) {}

  const Plan& plan() const { return plan_; }

  // The decisions that came up, with the number of ways each had.
  const std::map<Point, std::size_t>& taken() const { return taken_; }

 protected:
  std::size_t choose(const Decision& decision) override;

 private:
  Plan plan_;
  std::map<Point, std::size_t> taken_;
  std::map<Rank, std::size_t> count_;  // of decisions, by rank
};

}  // namespace rollcall::sim
