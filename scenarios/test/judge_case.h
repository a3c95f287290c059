#pragma once

// Runs one case and returns its outcome: the work of one process of the pool.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/format/cases.h"
#include "scenarios/format/scenario.h"
#include "scenarios/test/failure_store.h"
#include "sim/report/report.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

struct JudgeOptions {
  std::optional<std::uint64_t> seed{};
  std::string golden{};        // a folder with the calls of every case; empty: the files that scenarios name
  bool update_golden = false;  // write instead of comparing
  bool timeline = false;       // reports will show calls
  bool page = false;           // also returns the report as HTML
  bool color = false;
  bool verbose = false;
  std::vector<StoredFailure> known{};  // failures that only some schedules have; tried first
};

viz::TestOutcome judge_case(const Case& one, const JudgeOptions& options);

// The same for a case that has run. `expect` is the position of its expectation.
viz::TestOutcome outcome_of(const Scenario& scenario, const Report& report, const viz::SourcePlace& expect);

}  // namespace rollcall::scenario
