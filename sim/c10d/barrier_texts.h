#pragma once

// The errors of ranks that wait in a barrier that other ranks do not reach.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// A monitored barrier: rank 0 runs it and names the missing ranks, the others only see rank 0 fail
// (ProcessGroupGloo.cpp, monitoredBarrier). With TORCH_DISTRIBUTED_DEBUG=DETAIL, one precedes every collective and
// waits for all ranks. `missing` are ranks of the group, ascending, and not empty. `transport` is the backend's own
// timeout text.
std::string monitored_root_text(const std::vector<Rank>& missing, bool wait_all_ranks, Duration timeout,
                                const std::string& transport);
std::string monitored_member_text(Rank group_rank, const std::string& transport);

// The barrier in the store in which every call that makes a process group ends (torch/distributed/
// distributed_c10d.py, _store_based_barrier). `number`: of the new_group, from 0; the world's own barrier came first.
// `worker_count`: the number of ranks that have arrived, of `world_size`.
std::string store_barrier_timeout_text(Rank rank, std::int64_t number, Rank world_size, Rank worker_count,
                                       Duration timeout);

}  // namespace rollcall
