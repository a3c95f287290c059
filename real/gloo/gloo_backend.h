#pragma once

// The Gloo backend of torch, without torch: does what ProcessGroupGloo and the layers above it do with a call,
// on the distribution's libgloo. Programs on it get real sockets, real threads and Gloo's own arithmetic
// and errors.

#include <memory>

#include "real/rank/seat.h"
#include "sim/c10d/backend.h"

namespace rollcall::real {

// Connects the rank with every other member of each of its groups, and blocks until all have connected.
std::unique_ptr<Backend> connect_gloo(const Seat& seat);

}  // namespace rollcall::real
