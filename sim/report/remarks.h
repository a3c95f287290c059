#pragma once

// The remarks of a timeline about a call, besides its arguments.

#include <string>
#include <string_view>

#include "sim/base/time.h"

namespace rollcall {

// Viewers of timelines recognize slowed calls by this.
inline constexpr std::string_view slowed_mark = " times as long as alone";

// "1.90 times as long as alone, for calls that share a NIC"; empty if no time was lost.
std::string slowed_text(Duration took, Duration alone, std::string_view because);

}  // namespace rollcall
