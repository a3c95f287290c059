#pragma once

// Traces of torch.profiler: Chrome trace events of one rank, whose communication events carry arguments.
//
// Kept: collectives and messages in the order in which the host issued them, with group, element counts,
// dtype, number, and the time that their kernels took. Ignored: everything else. The arguments are on the kernel,
// and with record_shapes also on the host's record_param_comms; the "External id" says that the two are one call.
// Traces without arguments (of Gloo, or of a torch built without Kineto, which writes a bare list of events) have
// the host's operators; unless they name a single group, all calls are assumed to be of one group.
// A trace holds activities that have finished, so it does not show hangs; it shows calls that disagree and ranks
// that are slow. Written by libkineto/src/output_json.cpp and torch/csrc/profiler/util.cpp (saveNcclMeta).

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_kineto(const Value& value);

// Throws BadFile if the trace was merged from several ranks.
RankRecording decode_kineto(const Value& value);

}  // namespace rollcall::traces
