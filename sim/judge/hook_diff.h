#pragma once

// What a main_hook calls, next to what the iteration calls that it should shadow. The judge knows the one pair of calls
// that met; which calls they stood among, only the programs know.

#include "sim/match/outlook.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// Adds to a join_hook_mismatch the collectives of one iteration and of one shadow of it, and names the rule that was
// broken where the joinable is one of torch's. Other verdicts stay as they are.
void add_hook_diff(const Outlook& outlook, Verdict& verdict);

}  // namespace rollcall::check
