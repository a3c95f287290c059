#pragma once

// Parses the text in which a recorder describes a call.

#include <string_view>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// Takes "nccl:send 0->1", "nccl:recv 1<-0" (ranks inside the group), "nccl:all_reduce", "allreduce". Sets
// backend,
// op, and the source and destination of messages.
check::DumpCall parse_profiling_name(std::string_view name);

}  // namespace rollcall::traces
