#pragma once

// A diagnosis for a person, on the page that text_report.h uses: who, what, and where in the first line,
// then the waiting ranks, the cause, the confidence, and what to check next.

#include <string>

#include "sim/report/diagnosis.h"
#include "viz/base/text_style.h"

namespace rollcall::viz {

// Complete lines.
std::string text_diagnosis(const Diagnosis& diagnosis, const TextStyle& style);

}  // namespace rollcall::viz
