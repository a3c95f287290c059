#pragma once

// Simulated time. Integer nanoseconds everywhere: no floating point, no wall clock.

#include <cstdint>
#include <limits>

namespace rollcall {

// A span of simulated time, in nanoseconds.
using Duration = std::int64_t;

// A point in simulated time: nanoseconds since the run began.
using Time = std::int64_t;

inline constexpr Time never = std::numeric_limits<Time>::max();

inline constexpr Duration nanosecond = 1;
inline constexpr Duration microsecond = 1'000;
inline constexpr Duration millisecond = 1'000'000;
inline constexpr Duration second = 1'000'000'000;

}  // namespace rollcall
