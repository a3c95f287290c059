#pragma once

// What a real backend is to those who start ranks on it.

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "real/rank/seat.h"
#include "sim/c10d/backend.h"

namespace rollcall::real {

// A real run that cannot be made on this machine. The text is one line that says why.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct BackendEntry {
  std::string_view name;
  // Why it cannot run `ranks` ranks here, in one line; empty when it can.
  std::string (*obstacle)(Rank ranks);
  // Connects the rank to the others and blocks until all have come. Throws std::exception. In the rank's own
  // process: what fails there may take it down.
  std::unique_ptr<Backend> (*connect)(const Seat& seat);
};

}  // namespace rollcall::real
