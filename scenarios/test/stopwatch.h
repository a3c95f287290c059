#pragma once

// The one place that reads clocks. The outcome of scenarios never depends on it: it says how long a test took, when a
// run began, and when somebody has waited long enough.

#include <string>

#include "sim/base/time.h"

namespace rollcall::scenario {

class Stopwatch {
 public:
  Stopwatch();
  Duration elapsed() const;

 private:
  Duration start_;
};

// "2026-11-21T06:10:00" (UTC). SOURCE_DATE_EPOCH, where it is set, stands for now: then reports of equal runs
// are equal.
std::string timestamp();
bool has_fixed_date();

}  // namespace rollcall::scenario
