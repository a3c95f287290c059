#pragma once

// What torch logs of the barrier that ranks pass in a key of the store when they make a group. The number of the key is
// 1 for init_process_group, and each new_group has the next one. (torch/distributed/distributed_c10d.py,
// _store_based_barrier)
//
//     Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:2
//     (world_size=4, worker_count=3, timeout=0:30:00)

#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

bool looks_like_store_barrier(std::string_view bytes);
// The last barrier of each rank that names itself, unless it is through.
std::vector<check::LogFact> read_store_barriers(const LogStream& log);

}  // namespace rollcall::traces
