#pragma once

// JSON text as a Value. Iterative, so that a file of a million brackets is an error and no crash.

#include <string_view>

#include "traces/value.h"

namespace rollcall::traces {

// Does not borrow `text`. Throws BadFile.
Value read_json(std::string_view text, Arena& arena);

}  // namespace rollcall::traces
