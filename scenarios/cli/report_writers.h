#pragma once

// How every kind of report of a run is written. What is given is borrowed by the result.

#include "scenarios/cli/report_files.h"
#include "sim/report/report.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::cli {

// Of one run: page_kinds().
ReportWriters writers_of(const Report& report);
// Of one run, which `run` is as a test run: run_kinds().
ReportWriters writers_of(const Report& report, const viz::TestRun& run);
// Of several: run_kinds().
ReportWriters writers_of(const viz::TestRun& run);

}  // namespace rollcall::cli
