#pragma once

// A test run for a program: a list of reports, as json_report writes them, each with its test's result added:
//
//   [ { "schema_version": 1, "scenario": "...", ..., "file": "...", "case": "...", "status": "failed" }, ... ]

#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

std::string test_json(const TestRun& run);

}  // namespace rollcall::viz
