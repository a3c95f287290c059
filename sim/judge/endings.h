#pragma once

// What ranks did before they ended without a call that others wait for: fewer rounds of the same loop, or another
// branch.

#include "sim/match/outlook.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// For a verdict that says no more than that ranks are missing in a collective.
bool has_unexplained_endings(const Verdict& verdict);
void explain_endings(const Outlook& outlook, Verdict& verdict);

}  // namespace rollcall::check
