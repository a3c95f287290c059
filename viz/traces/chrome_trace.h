#pragma once

// A report's timeline as Chrome trace-event JSON, for ui.perfetto.dev. One process per rank, so that
// all ranks stand below each other; arrows run from the rank that came last to those it kept waiting;
// a call that never returned is drawn to the end and marked.

#include <iosfwd>

#include "sim/report/report.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::viz {

// Needs a report with a timeline. Streams: the memory it takes does not grow with the text. Whether
// the writing succeeded is the stream's state.
void chrome_trace(const Report& report, std::ostream& out, const TraceOptions& options = {});

}  // namespace rollcall::viz
