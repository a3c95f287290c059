#pragma once

// Errors of NVIDIA's driver in the kernel's log: "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the
// bus." They name a GPU and a process, no rank, unless the file is that of one.

#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"

namespace rollcall::traces {

bool looks_like_kernel_log(std::string_view bytes);
std::vector<check::LogFact> read_kernel_log(std::string_view bytes, Rank rank, const std::string& file);

}  // namespace rollcall::traces
