#pragma once

// A report's timeline as Perfetto's own protobuf (TrackEvent), for ui.perfetto.dev: smaller than JSON,
// quicker to load, with times in whole nanoseconds. The same picture as chrome_trace draws.

#include <iosfwd>

#include "sim/report/report.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::viz {

// As chrome_trace: streams, and the stream's state says whether it succeeded.
void perfetto_trace(const Report& report, std::ostream& out, const TraceOptions& options = {});

}  // namespace rollcall::viz
