#pragma once

// The real backends: which of them this rollcall was built with, and which can work on this machine. Nothing
// outside this header knows whether Gloo or NCCL was there at build time.

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "real/launch/seat.h"
#include "sim/dist/backend.h"

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

// Ordered by preference: what "auto" takes first comes first.
std::span<const BackendEntry> backends();

// "gloo", "nccl", or "auto": the first that can run here. Throws Unavailable with the obstacle, and
// std::invalid_argument for another name.
const BackendEntry& find_backend(std::string_view name, Rank ranks);

}  // namespace rollcall::real
