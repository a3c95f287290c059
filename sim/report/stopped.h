#pragma once

// A rank that made no call for so long that its recorder stopped it. In scenarios it raises an exception of this type;
// no other program does, and reports do not call it one.

#include <string_view>

namespace rollcall {

inline constexpr std::string_view stopped_type = "Stopped";

}  // namespace rollcall
