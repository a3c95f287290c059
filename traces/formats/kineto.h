#pragma once

// Traces of torch.profiler: Chrome trace events of one rank, whose communication carries arguments.
//
// Kept: collectives and messages in the order in which the host issued them, with group, element counts,
// dtype, number and the time their kernels took. Ignored: everything else. The arguments stand on the kernel,
// with record_shapes also on the host's record_param_comms; the two are told to be one by their "External id".
// Traces without arguments (of Gloo, or of a torch built without Kineto, which writes a bare list of events) have
// the host's operators; where they name no single group, all calls are taken to be of one.
// A trace holds activities that have finished, so it shows no hang; it shows calls that disagree and ranks
// that are slow. Written by libkineto/src/output_json.cpp and torch/csrc/profiler/util.cpp (saveNcclMeta).

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_kineto(const Value& value);

// Throws BadFile for traces that several ranks were merged into.
RankRecording decode_kineto(const Value& value);

}  // namespace rollcall::traces
