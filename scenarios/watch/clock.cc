#include "scenarios/watch/clock.h"

#include <chrono>

namespace rollcall::watch {

namespace {

template <typename Clock>
std::int64_t now_of() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

Time monotonic_now() { return now_of<std::chrono::steady_clock>(); }

std::int64_t calendar_now() { return now_of<std::chrono::system_clock>(); }

}  // namespace rollcall::watch
