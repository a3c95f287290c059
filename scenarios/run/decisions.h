#pragma once

// Decisions: what timing decides in a run, decided by a plan instead. Every rank counts its own, so that a plan
// means the same in every run of one program.

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "sim/dist/op.h"

namespace rollcall::scenario {

class Decisions {
 public:
  struct Point {
    Rank rank = 0;
    std::size_t index = 0;  // of this rank's decisions
    friend auto operator<=>(const Point&, const Point&) = default;
  };
  using Plan = std::map<Point, std::size_t>;  // the way taken; where it says nothing, the first

  explicit Decisions(Plan plan = {}) : plan_(std::move(plan)) {}

  // The way that `rank` takes now, of `ways`.
  std::size_t take(Rank rank, std::size_t ways);

  const Plan& plan() const { return plan_; }

  // The decisions that came up, with the number of ways each had.
  const std::map<Point, std::size_t>& met() const { return met_; }

 private:
  Plan plan_;
  std::map<Point, std::size_t> met_;
  std::map<Rank, std::size_t> taken_;  // how many, by rank
};

}  // namespace rollcall::scenario
