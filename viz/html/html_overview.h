#pragma once

// A test run as one HTML page: a table of its scenarios, those that failed first, each with a link to its own report.
// Needs no script; nothing is loaded from elsewhere.

#include <iosfwd>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

void html_overview(const TestRun& run, std::ostream& out);

}  // namespace rollcall::viz
