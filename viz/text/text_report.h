#pragma once

// A report for a person: the terminal, a CI log. Who, what, and where in the first line; then where
// every rank is, why, what to do, and the command that reproduces it.
//
// Newcomers to viz/ should start here: every file of this folder turns a Report into one kind of output and sees only
// the Report.

#include <string>

#include "sim/report/report.h"
#include "viz/base/text_style.h"

namespace rollcall::viz {

// Returns complete lines. Not longer for 1,000 ranks than for 4, unless the style is verbose.
std::string text_report(const Report& report, const TextStyle& style);

}  // namespace rollcall::viz
