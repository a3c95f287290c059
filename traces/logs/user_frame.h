#pragma once

// The frames of a Python stack: which are the user's, and which are calls of torch.distributed.

#include <optional>
#include <string_view>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// The frame of `  File "train.py", line 12, in main`, where `before_name` is ", in ". Empty for other lines.
std::optional<check::DumpFrame> frame_in(std::string_view line, std::string_view before_name);
// True for frames in torch/distributed/distributed_c10d.py, whose function is the call.
bool is_c10d(const check::DumpFrame& frame);
// True for frames that are neither in an installed package nor in Python's own library.
bool is_users(const check::DumpFrame& frame);

}  // namespace rollcall::traces
