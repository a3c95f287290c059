#pragma once

// Parses JSON text to a Value. Iterative, so that a file of a million brackets is an error and not a crash.
// Does not borrow `text`. Throws BadFile.

#include <string_view>

#include "traces/values/value.h"

namespace rollcall::traces {

// Does not borrow `text`. Throws BadFile.
Value read_json(std::string_view text, Arena& arena);

// The same, but several objects one after the other (lines of JSON, or without anything in between) become a
// list.
Value read_json_sequence(std::string_view text, Arena& arena);

}  // namespace rollcall::traces
