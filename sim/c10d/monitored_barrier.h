#pragma once

// The errors that ranks raise from a monitored barrier that some ranks do not reach: rank 0 runs it and names the
// missing ones, the others only see rank 0 fail (ProcessGroupGloo.cpp, monitoredBarrier). With
// TORCH_DISTRIBUTED_DEBUG=DETAIL, one precedes every collective and waits for all ranks.

#include <string>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// `missing` are ranks of the group, ascending, and not empty. `transport` is the backend's own timeout text.
std::string monitored_root_text(const std::vector<Rank>& missing, bool wait_all_ranks, Duration timeout,
                                const std::string& transport);
std::string monitored_member_text(Rank group_rank, const std::string& transport);

}  // namespace rollcall
