#pragma once

// Reads back what viz/json/json_report.h wrote, so that a report from yesterday's CI can be inspected. Timelines
// are not included.

#include <optional>
#include <string>

#include "sim/report/report.h"

namespace rollcall::scenario {

class SourceText;

// Empty if the text is another kind of JSON object. Throws InvalidScenario, with positions, if it is not
// JSON, or not a valid report.
std::optional<Report> read_report(const SourceText& source);

}  // namespace rollcall::scenario
