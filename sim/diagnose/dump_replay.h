#pragma once

// Computes states for recordings that have none: a call is finished if every other member has made the same call. The
// remaining calls are those that the ranks would wait in.

#include "sim/diagnose/dump.h"

namespace rollcall::check {

// Sets the states of the records of ranks without recorded states. Calls before another member's first
// one, and for windows those after its last, count as met: nothing is known about them.
void replay_states(JobDump& job);

}  // namespace rollcall::check
