#pragma once

// The NCCL backend: what torch's ProcessGroupNCCL does with a call, over the NCCL and CUDA libraries that the
// machine has. They are opened when they are asked for, never linked, so that one rollcall runs with and
// without them, and says which piece is missing.

#include <memory>
#include <string>

#include "real/rank/seat.h"
#include "sim/c10d/backend.h"

namespace rollcall::real {

// Why NCCL cannot run that many ranks here, in one line; empty when it can.
std::string nccl_obstacle(Rank ranks);

// Makes the communicators of the rank's groups, and blocks until all members have come.
std::unique_ptr<Backend> connect_nccl(const Seat& seat);

}  // namespace rollcall::real
