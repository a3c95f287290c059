#pragma once

// WatchedSteps: the step budget of a simulation, handed out in portions. Between two portions a callback may inspect
// the run, which costs the steps themselves nothing.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "sim/c10d/step_budget.h"

namespace rollcall::sim {

class WatchedSteps final : public StepBudget {
 public:
  static constexpr std::int64_t portion = 65'536;

  // `look` may be null, and may throw to end the rank that is running.
  WatchedSteps(std::int64_t most, std::function<void()> look)
      : StepBudget(0), rest_(most), look_(std::move(look)) {
    take_portion();
  }

  // The next step exceeds the limit.
  void close() { rest_ = left_ = 0; }

 private:
  void used_up() override {
    if (rest_ == 0) {
      throw StepLimitReached{};
    }
    take_portion();
    --left_;  // the step that asked
    if (look_) {
      look_();
    }
  }

  void take_portion() {
    left_ = std::min(rest_, portion);
    rest_ -= left_;
  }

  std::int64_t rest_;  // steps that have not been handed out
  std::function<void()> look_;
};

}  // namespace rollcall::sim
