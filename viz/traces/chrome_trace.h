#pragma once

// A report's timeline as Chrome trace-event JSON, for ui.perfetto.dev. One process per rank, so that
// all ranks are shown below each other; arrows run from the rank that arrived last to those it kept waiting;
// a call that never returned is drawn to the end and marked.

#include <iosfwd>

#include "sim/report/report.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::viz {

// Needs a report with a timeline. Streams its output: the memory it takes does not grow with the text. A write error
// shows in the stream's state.
void chrome_trace(const Report& report, std::ostream& out, const TraceOptions& options = {});

}  // namespace rollcall::viz
