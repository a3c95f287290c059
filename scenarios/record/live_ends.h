#pragma once

// How ranks of a real run came to their end, where their records just stop or tell of others.

#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// For records of live runs:
// - a rank whose call failed because a connection broke, or nobody came in time, is one that waited in that call;
// - a rank whose record stops outside of every call was killed there;
// - one whose record stops inside a call waits in it, as in a job that hangs; unless others' connections broke: then it
//   was killed, and the call was none of its any more.
void settle_live_ends(traces::ScriptRecord& record);

}  // namespace rollcall::scenario
