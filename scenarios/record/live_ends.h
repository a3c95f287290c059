#pragma once

// Determines how ranks of a real run ended, if their records just stop or report the end of others.

#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// For records of live runs:
// - a rank whose call failed because a connection broke, or no peer arrived in time, waited in that call;
// - a rank whose record stops outside of every call was killed there;
// - a rank whose record stops inside a call waits in it, as in a job that hangs; unless others' connections broke:
//   then it was killed, and is no longer in the call.
void settle_live_ends(traces::ScriptRecord& record);

}  // namespace rollcall::scenario
