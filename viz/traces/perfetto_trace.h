#pragma once

// A report's timeline as Perfetto's own protobuf (TrackEvent), for ui.perfetto.dev: smaller than JSON,
// faster to load, with times in whole nanoseconds. Shows the same picture as chrome_trace.

#include <iosfwd>

#include "sim/report/report.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::viz {

// Like chrome_trace, streams its output and shows write errors in the stream's state.
void perfetto_trace(const Report& report, std::ostream& out, const TraceOptions& options = {});

}  // namespace rollcall::viz
