#pragma once

// How a recorded rank ended without an exception. In scenarios it raises one of these types; no other program does, and
// reports do not call them exceptions.

#include <string_view>

namespace rollcall {

inline constexpr std::string_view stopped_type = "Stopped";  // its recorder stopped it: it made no call for too long
inline constexpr std::string_view killed_type = "ProcessKilled";  // a signal ended its process

}  // namespace rollcall
