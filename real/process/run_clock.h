#pragma once

#include <chrono>

#include "sim/base/time.h"

namespace rollcall::real {

// Real time since the start of something, such as a run or a test.
class RunClock {
 public:
  using Source = std::chrono::steady_clock;  // the same for all processes on a machine

  // `now`: what another clock of the run shows at this moment.
  explicit RunClock(Time now = 0) : start_(Source::now() - std::chrono::nanoseconds(now)) {}
  Time now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Source::now() - start_).count();
  }

 private:
  Source::time_point start_;
};

}  // namespace rollcall::real
