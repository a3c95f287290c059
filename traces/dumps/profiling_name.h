#pragma once

// The one text in which a recorder says what a call was.

#include <string_view>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// "nccl:send 0->1", "nccl:recv 1<-0" (ranks inside the group), "nccl:all_reduce", "allreduce". Sets backend,
// op and the ends of messages.
check::DumpCall parse_profiling_name(std::string_view name);

}  // namespace rollcall::traces
