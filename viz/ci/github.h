#pragma once

// A test run for GitHub Actions: annotations in the log, and the job's summary in Markdown.

#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

// One "::error file=...,line=...::..." for each failure. GitHub shows ten per step; the summary has the rest.
std::string github_annotations(const TestRun& run);

// Counts, and a table of the failures, followed by their reports, folded. At most as long as GitHub accepts.
std::string markdown_summary(const TestRun& run);

}  // namespace rollcall::viz
