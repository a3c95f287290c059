#pragma once

// States for recordings that have none: a call is finished when every other member has come to it with the same
// call. What is left over is what the ranks would wait in.

#include "sim/diagnose/dump.h"

namespace rollcall::check {

// Sets the states of the records of ranks without recorded states. Calls from before another member's first
// one, and for windows those behind its last, count as met: nothing is known of them.
void replay_states(JobDump& job);

}  // namespace rollcall::check
