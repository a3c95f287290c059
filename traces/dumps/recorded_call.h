#pragma once

// What a Flight Recorder writes about a call: the operation's name, and the shapes and dtypes of its tensors.

#include <optional>
#include <string_view>
#include <vector>

#include "sim/c10d/backend_traits.h"
#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// `members`: the size of the group. One record, or more where the backend runs several functions.
std::vector<check::DumpCall> recorded_calls(const Op& op, const BackendTraits& backend, Rank members);

// NCCL's records of a scatter call the part that a rank receives its input, and the root's list its output. A rank that
// is not the root has a placeholder for the list, in a gather, too: one tensor of shape [0] and dtype "UNKNOWN_SCALAR".
// (ProcessGroupNCCL.cpp, scatter and gather; as torch 2.11 writes them.) as_called() takes the tensors of a record and
// returns those of the call; as_recorded() does the opposite, where is_recorded_otherwise().
bool is_recorded_otherwise(const check::DumpCall& called);
check::DumpCall as_called(check::DumpCall recorded);
check::DumpCall as_recorded(check::DumpCall called);

// Takes what a recorder calls a call: "nccl:send 0->1", "nccl:recv 1<-0" (ranks inside the group), "nccl:all_reduce",
// "allreduce". Sets backend, op, and the source and destination of messages.
check::DumpCall parse_profiling_name(std::string_view name);

// The marker that closes a batch of messages.
check::DumpCall batch_marker(std::string_view backend);

// Returns the operation that has this name in a recording; empty for markers and for other recorders' names.
std::optional<OpKind> recorded_kind(std::string_view name);

}  // namespace rollcall::traces
