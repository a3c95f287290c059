#pragma once

// The part of a page about the cost of uneven inputs: samples seen twice or never, memory of one device, ranks that
// waited for others under Join. Also the section on where the time went.

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// Writes a heading and its content, or nothing if there is nothing to say.
void html_costs(Markup& out, const Report& report);

// Shows how every rank's time divides. Needs the timeline of a run; writes nothing without one.
void html_profile(Markup& out, const Report& report);

}  // namespace rollcall::viz
