#pragma once

// The failures of a test run as SARIF 2.1.0 (OASIS), limited to what GitHub's code scanning shows: the rule, the
// place, and the ranks' last calls (a thread flow for each set of ranks that made the same ones).

#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

// `version` is the version of rollcall.
std::string sarif_report(const TestRun& run, const std::string& version);

}  // namespace rollcall::viz
