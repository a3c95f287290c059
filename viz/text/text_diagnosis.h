#pragma once

// A diagnosis for a person, on the page that text_report.h uses: who, what and where in the first line,
// who suffers, why, how sure that is and what to look at next.

#include <string>

#include "sim/report/diagnosis.h"
#include "viz/base/text_style.h"

namespace rollcall::viz {

// Complete lines.
std::string text_diagnosis(const Diagnosis& diagnosis, const TextStyle& style);

}  // namespace rollcall::viz
