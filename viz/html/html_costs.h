#pragma once

// The part of a page about what uneven inputs cost: samples seen twice or never, memory of one device, ranks that
// waited for others under Join.

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// A heading and its content, or nothing when there is nothing to say.
void html_costs(Markup& out, const Report& report);

}  // namespace rollcall::viz
