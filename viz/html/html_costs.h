#pragma once

// The part of a page about what uneven inputs cost: samples seen twice or never, memory of one device, ranks that
// waited for others under Join. And where the time went.

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// A heading and its content, or nothing when there is nothing to say.
void html_costs(Markup& out, const Report& report);

// How every rank's time divides. Needs a timeline of a run; nothing without one.
void html_profile(Markup& out, const Report& report);

}  // namespace rollcall::viz
