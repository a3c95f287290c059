#pragma once

// What Gloo throws, as what torch's Python raises.

#include <gloo/common/error.h>

#include "real/launch/recorder.h"
#include "sim/dist/error.h"

namespace rollcall::real {

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
