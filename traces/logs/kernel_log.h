#pragma once

// NVIDIA driver errors in the kernel log: "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
// They name a GPU and a process but not a rank, so the rank is known only if the file belongs to one.

#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

bool looks_like_kernel_log(std::string_view bytes);
std::vector<check::LogFact> read_kernel_log(const LogStream& log);

}  // namespace rollcall::traces
