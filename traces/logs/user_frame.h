#pragma once

// Tells which frames of a Python stack are the user's, and which are calls of torch.distributed.

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// True for frames in torch/distributed/distributed_c10d.py, whose function is the call.
bool is_c10d(const check::DumpFrame& frame);
// True for frames that are neither in an installed package nor in Python's own library.
bool is_users(const check::DumpFrame& frame);

}  // namespace rollcall::traces
