#pragma once

// Translates the exceptions that Gloo throws into those that torch's Python raises.

#include <chrono>

#include <gloo/common/error.h>

#include "real/rank/recorder.h"
#include "sim/base/error.h"
#include "sim/base/time.h"

namespace rollcall::real {

// In the unit of Gloo's timeouts.
inline std::chrono::milliseconds in_milliseconds(Duration duration) {
  return std::chrono::milliseconds(duration / millisecond);
}

// Calls `run`. A lost connection or a timeout becomes LostPeerError; any other exception of Gloo's, RuntimeError.
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
