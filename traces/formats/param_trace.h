#pragma once

// PARAM's basic communication traces: one rank's operations as a JSON list.
//
// Kept: collectives and messages with group, element counts, and dtype; start times where there are any. Ignored:
// compute, markers, waits, and batches as such. PARAM's own reader is param's et_replay/commsTraceParser.py.

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_param_trace(const Value& value);

// `rank`: from the file's name, used for messages.
RankRecording decode_param_trace(const Value& value, Rank rank);

}  // namespace rollcall::traces
