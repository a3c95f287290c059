#pragma once

// The clocks of real jobs. No simulation and no verdict reads them.

#include <cstdint>

#include "sim/base/time.h"

namespace rollcall::watch {

// Never goes back.
Time monotonic_now();
// Nanoseconds since 1970: the clock of the times in ranks' rings.
std::int64_t calendar_now();

}  // namespace rollcall::watch
