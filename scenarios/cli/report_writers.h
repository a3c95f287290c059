#pragma once

// Writes every kind of report of a run. The result borrows its arguments.

#include "scenarios/cli/report_files.h"
#include "sim/report/report.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::cli {

// For one run: page_kinds().
ReportWriters writers_of(const Report& report);
// For one run, which is also given as the test run `run`: run_kinds().
ReportWriters writers_of(const Report& report, const viz::TestRun& run);
// For several runs: run_kinds().
ReportWriters writers_of(const viz::TestRun& run);

}  // namespace rollcall::cli
