#pragma once

// Which frames of a Python stack are the user's, and which are calls of torch.distributed.

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// In torch/distributed/distributed_c10d.py: the function is the call.
bool is_c10d(const check::DumpFrame& frame);
// Not in an installed package, nor in Python's own library.
bool is_users(const check::DumpFrame& frame);

}  // namespace rollcall::traces
