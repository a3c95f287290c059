#pragma once

// What NCCL warns of when a call of its own fails: "node2:5776:5902 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got
// completion from peer 10.2.0.5<33092> with error 12, ...". The lines name a host and the GPU of a process there, and
// not a rank.

#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

bool looks_like_nccl_warnings(std::string_view bytes);
std::vector<check::LogFact> read_nccl_warnings(const LogStream& log);

}  // namespace rollcall::traces
