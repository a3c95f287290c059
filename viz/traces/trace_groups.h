#pragma once

// Describes process groups as torch's profiler does.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

// `distributedInfo`: the backend, the world, and every group with its members, so that events do not have to
// list them. `rank`: the file's rank; -1 for a file of all ranks.
std::string distributed_info(const Report& report, Rank rank);

struct TraceGroup {
  std::int64_t size = 0;
  std::string ranks;  // "[0, 1]" as PyTorch writes it; empty for more than 30 members
};

// Indexed by the timeline's index of the group's name. Groups that the report does not list get the members that the
// timeline shows.
std::vector<TraceGroup> trace_groups(const Report& report);

// The number of elements that a collective returns if `numel` go in.
std::int64_t numel_out(const std::string& op, std::int64_t numel, std::int64_t group_size);

}  // namespace rollcall::viz
