#pragma once

// A report for a person: the terminal, a CI log. Who, what and where in the first line; then where
// every rank is, why, what to do, and the command that shows it again.
//
// A newcomer to viz/ starts here: every file of this folder turns a Report into one kind of output
// and sees nothing but the Report.

#include <string>

#include "sim/report/report.h"
#include "viz/base/text_style.h"

namespace rollcall::viz {

// Complete lines. As long for 1,000 ranks as for 4, unless the style is verbose.
std::string text_report(const Report& report, const TextStyle& style);

}  // namespace rollcall::viz
