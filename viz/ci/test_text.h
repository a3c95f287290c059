#pragma once

// A test run for a person: a line per scenario, the reports of the failed ones, and a short summary at the end.

#include <string>

#include "viz/base/text_style.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

// "ok      scenarios/uneven.json::uneven inputs", with a newline.
std::string outcome_line(const TestOutcome& outcome, const TextStyle& style);

// The report under a heading. Empty if the scenario passed.
std::string failure_text(const TestOutcome& outcome, bool color);

// A line for every failure, and the counts.
std::string summary_text(const TestRun& run, bool color);

}  // namespace rollcall::viz
