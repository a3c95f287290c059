#pragma once

// What Gloo throws, as what torch's Python raises.

#include <chrono>

#include <gloo/common/error.h>

#include "real/rank/recorder.h"
#include "sim/base/error.h"
#include "sim/base/time.h"

namespace rollcall::real {

// As Gloo counts time.
inline std::chrono::milliseconds in_milliseconds(Duration duration) {
  return std::chrono::milliseconds(duration / millisecond);
}

// Calls `run`. A lost connection or a timeout becomes LostPeerError; whatever else Gloo throws, RuntimeError.
template <typename Run>
auto translating(Run&& run) {
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const gloo::IoException& error) {
    throw LostPeerError(error.what());
  } catch (const std::exception& error) {
    throw RuntimeError(error.what());
  }
}

}  // namespace rollcall::real
