#pragma once

// What a Flight Recorder writes of a call: the operation's name, and shapes and dtypes of its tensors.

#include <optional>
#include <string_view>

#include "sim/c10d/backend_traits.h"
#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// `members`: the size of the group.
check::DumpCall recorded_call(const Op& op, const BackendTraits& backend, Rank members);

// What closes a batch of messages.
check::DumpCall batch_marker(std::string_view backend);

// The operation that goes by this name in a recording; nothing for markers and for names of other recorders.
std::optional<OpKind> recorded_kind(std::string_view name);

}  // namespace rollcall::traces
