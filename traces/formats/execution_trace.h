#pragma once

// PyTorch execution traces ("Chakra host traces"): every operator of one rank as JSON.
//
// Kept: the nodes named record_param_comms, in the order of their ids, with group, numbers, element counts, and
// dtype; group members from the node "## process_group:init ##". Ignored: all other operators, tensors, and
// dependencies. There are no times and no states. Written by
// torch/csrc/profiler/standalone/execution_trace_observer.cpp; schemas from 1.0.3 on are supported.

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_execution_trace(const Value& value);

// `rank`: from the file's name, used for messages. Throws BadFile.
RankRecording decode_execution_trace(const Value& value, Rank rank);

}  // namespace rollcall::traces
