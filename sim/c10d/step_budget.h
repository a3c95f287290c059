#pragma once

// StepBudget: how many loop iterations and calls the ranks of a run may still make. Every loop that a scenario can make
// endless spends from it, so that an endless program ends in a verdict and not in a hang.

#include <cstdint>

namespace rollcall {

// Thrown out of a rank program whose run has used up its steps. Not a std::exception, so that a
// program's own catch clauses let it through.
struct StepLimitReached {};

class StepBudget {
 public:
  explicit StepBudget(std::int64_t steps) : left_(steps) {}
  virtual ~StepBudget() = default;
  StepBudget(const StepBudget&) = delete;
  StepBudget& operator=(const StepBudget&) = delete;

  // Throws StepLimitReached when nothing is left.
  void spend() {
    if (--left_ < 0) [[unlikely]] {
      used_up();
    }
  }

 protected:
  // Called for the first step that the budget does not cover: resets left_ for the steps after it, or throws.
  virtual void used_up() { throw StepLimitReached{}; }

  std::int64_t left_;
};

}  // namespace rollcall
