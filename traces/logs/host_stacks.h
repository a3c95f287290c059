#pragma once

// Where the ranks' programs are: stacks as py-spy dump and Python's faulthandler write them, one rank per file, and
// as torch.distributed.debug collects them, with a line "=== Rank 3: ... ===" before each rank's.

#include <string_view>
#include <vector>

#include "sim/diagnose/dump.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

bool looks_like_host_stacks(std::string_view bytes);

// The frames of the program's own thread, innermost first; empty if there is no stack.
check::DumpStack program_stack(std::string_view bytes);

std::vector<check::LogFact> read_host_stacks(const LogStream& log);

}  // namespace rollcall::traces
