#pragma once

// Explains why ranks ended without a call that others wait for: they ran fewer iterations of the same loop, or took
// another branch.

#include "sim/match/outlook.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// True if the verdict says only that the other side of a call is missing, and not why.
bool has_unexplained_endings(const Verdict& verdict);
void explain_endings(const Outlook& outlook, Verdict& verdict);

}  // namespace rollcall::check
