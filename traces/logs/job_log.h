#pragma once

// The log lines that say something about a hang: ProcessGroupWrapper's mismatches
// (TORCH_DISTRIBUTED_DEBUG=DETAIL), monitored_barrier, the watchdog of ProcessGroupNCCL, its desync report
// (TORCH_NCCL_DESYNC_DEBUG), and the output of NCCL RAS (ncclras). All other lines are skipped.
//
// The texts come from torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp, ProcessGroupGloo.cpp,
// ProcessGroupNCCL.cpp, TraceUtils.h, and from NCCL's src/ras/client_support.cc.

#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

bool looks_like_job_log(std::string_view bytes);

std::vector<check::LogFact> read_job_log(const LogStream& log);

}  // namespace rollcall::traces
