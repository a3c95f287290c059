#pragma once

// A test run as one HTML page: a table of its scenarios, the failed ones first, each with a link to its own report.
// Works without scripts and loads nothing.

#include <iosfwd>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

void html_overview(const TestRun& run, std::ostream& out);

}  // namespace rollcall::viz
