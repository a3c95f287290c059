#pragma once

// From a judged run to its report: the one way that simulated runs, real runs, explorations and recordings take. The
// judge has only the evidence of one run, taken while it ended; what follows may ask for more, afterwards.

#include "sim/match/outlook.h"
#include "sim/report/report.h"

namespace rollcall::check {

// Puts the culprits of the report's verdict into an order, tells wrong peers from missing calls, shows what a main_hook
// leaves out, and looks at the samplers of a run that went well. Where the outlook knows nothing, the verdict stays.
void complete(Report& report, const Outlook& outlook);

}  // namespace rollcall::check
