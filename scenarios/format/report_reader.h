#pragma once

// Reads back what viz/json/json_report.h wrote, so that a report from yesterday's CI can be looked at. Timelines
// are not in it.

#include <optional>
#include <string>

#include "sim/report/report.h"

namespace rollcall::scenario {

class SourceText;

// Nothing when the text is another kind of JSON object. Throws InvalidScenario, with positions, for what is no
// JSON, or a report that is not sound.
std::optional<Report> read_report(const SourceText& source);

}  // namespace rollcall::scenario
