#pragma once

// A timeline for the terminal: a row per rank, a column per slice of time, one sign for what the rank did
// longest in it. Ranks that did the same share a row, so that a thousand ranks fit.

#include <cstddef>
#include <string>

#include "sim/report/report.h"
#include "viz/base/text_style.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::viz {

struct ChartStyle {
  bool ascii = false;  // for terminals and logs without Unicode
  bool color = false;
  std::size_t columns = 72;   // of the time axis
  std::size_t rows_max = 40;  // the culprits' rows are always among them
};

// Complete lines. Needs a report with a timeline. `options` choose ranks and time.
std::string timeline_chart(const Report& report, const TraceOptions& options, const ChartStyle& style);

}  // namespace rollcall::viz
