#pragma once

// Turns a judged run into its report. Simulated runs, real runs, explorations and recordings all come through here.
// The judge sees only the evidence of one run, taken as it ended; this step may ask for more afterwards.

#include "sim/match/outlook.h"
#include "sim/report/report.h"

namespace rollcall::check {

// Orders the culprits of the report's verdict, distinguishes wrong peers from missing calls, shows what a main_hook
// leaves out, and checks the samplers of a run that went well. Where the outlook knows nothing, the verdict stays.
void complete(Report& report, const Outlook& outlook);

}  // namespace rollcall::check
