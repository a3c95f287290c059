#pragma once

// JSON text as a Value. Iterative, so that a file of a million brackets is an error and no crash.

#include <string_view>

#include "traces/values/value.h"

namespace rollcall::traces {

// Does not borrow `text`. Throws BadFile.
Value read_json(std::string_view text, Arena& arena);

// The same, and of several objects one after the other (lines of JSON, or nothing in between) a list of them.
Value read_json_sequence(std::string_view text, Arena& arena);

}  // namespace rollcall::traces
