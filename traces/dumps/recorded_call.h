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

// The marker that closes a batch of messages.
check::DumpCall batch_marker(std::string_view backend);

// Returns the operation that has this name in a recording; empty for markers and for other recorders' names.
std::optional<OpKind> recorded_kind(std::string_view name);

}  // namespace rollcall::traces
