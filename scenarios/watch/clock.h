#pragma once

// The clocks of real jobs. Nothing that is simulated or judged reads them.

#include <cstdint>

#include "sim/base/time.h"

namespace rollcall::watch {

// Never goes back.
Time monotonic_now();
// Nanoseconds since 1970: what ranks date their rings by.
std::int64_t calendar_now();

}  // namespace rollcall::watch
