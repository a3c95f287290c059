#pragma once

// The NCCL backend: does what torch's ProcessGroupNCCL does with a call, on the NCCL and CUDA libraries of the
// machine. They are opened at run time, never linked, so one rollcall runs with and
// without them, and says which piece is missing.

#include <memory>
#include <string>

#include "real/rank/seat.h"
#include "sim/c10d/backend.h"

namespace rollcall::real {

// Why NCCL cannot run that many ranks here, in one line; empty if it can.
std::string nccl_obstacle(Rank ranks);

// Makes the communicators of the rank's groups, and blocks until all members have connected.
std::unique_ptr<Backend> connect_nccl(const Seat& seat);

}  // namespace rollcall::real
