#pragma once

// The interface of a real backend to the code that starts ranks on it.

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "real/rank/seat.h"
#include "sim/c10d/backend.h"

namespace rollcall::real {

// Thrown for a real run that this machine cannot do. The text is one line that says why.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct BackendEntry {
  std::string_view name;
  // Why it cannot run `ranks` ranks here, in one line; empty if it can.
  std::string (*obstacle)(Rank ranks);
  // Connects the rank to the others and blocks until all have connected. Throws std::exception. Called in the rank's
  // own process, because a failure there may end it.
  std::unique_ptr<Backend> (*connect)(const Seat& seat);
};

}  // namespace rollcall::real
