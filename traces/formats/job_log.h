#pragma once

// The lines in logs that say something about a hang: ProcessGroupWrapper's mismatches
// (TORCH_DISTRIBUTED_DEBUG=DETAIL), monitored_barrier, the watchdog of ProcessGroupNCCL, its desync report
// (TORCH_NCCL_DESYNC_DEBUG), and what NCCL RAS prints (ncclras). All other lines are passed over.
//
// Texts of torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp, ProcessGroupGloo.cpp, ProcessGroupNCCL.cpp,
// TraceUtils.h, and of NCCL's src/ras/client_support.cc.

#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"

namespace rollcall::traces {

bool looks_like_job_log(std::string_view bytes);

// `rank` is what the file's name says, for lines that name nobody; -1: nothing. Facts in order of the lines.
std::vector<check::LogFact> read_job_log(std::string_view bytes, Rank rank, const std::string& file);

}  // namespace rollcall::traces
