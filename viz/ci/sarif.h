#pragma once

// The failures of a test run as SARIF 2.1.0 (OASIS), in the part of it that GitHub's code scanning shows: the rule, the
// place, what the ranks called before (a thread flow for each set of ranks that did the same).

#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

// `version` is rollcall's.
std::string sarif_report(const TestRun& run, const std::string& version);

}  // namespace rollcall::viz
