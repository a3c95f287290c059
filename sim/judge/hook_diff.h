#pragma once

// Compares the calls of a main_hook with the calls of the iteration that it should shadow. The judge knows only the one
// pair of calls that met; the calls around them are known only from the programs.

#include "sim/match/outlook.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// Adds to a join_hook_mismatch the collectives of one iteration and of its shadow, and names the broken rule if the
// joinable is one of torch's. Leaves other verdicts alone.
void add_hook_diff(const Outlook& outlook, Verdict& verdict);

}  // namespace rollcall::check
