#pragma once

// Runs cases in parallel and delivers their outcomes, in order.

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "real/process/forked_pool.h"
#include "scenarios/test/collect.h"
#include "scenarios/test/judge_case.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

struct TestOptions {
  JudgeOptions judge{};
  real::ForkLimits limits{};
  std::size_t failures_max = 0;  // 0: any number
};

// Notifications to an observer; both are made in the process that calls run_tests.
struct TestEvents {
  std::function<void(viz::TestOutcome& outcome)> finished;               // in order; may remove parts
  std::function<void(const Case& newest, std::size_t done)> moved = {};  // a case began or ended
};

// Returns the outcomes in the order of `cases`, fewer after failures_max or when `interrupted` is set. They do not
// depend on limits.jobs. Throws std::system_error if processes cannot be created.
viz::TestRun run_tests(const std::vector<Collected>& cases, const TestOptions& options,
                       const TestEvents& events, const volatile std::sig_atomic_t& interrupted);

// "crashed: Segmentation fault": for any ending except returned.
std::string ending_phrase(const real::Ending& ending, const real::ForkLimits& limits);

}  // namespace rollcall::scenario
