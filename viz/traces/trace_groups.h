#pragma once

// What traces say about process groups, in the words of torch's profiler.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/report.h"

namespace rollcall::viz {

// `distributedInfo`: the backend, the world, and every group with its members, so that no event has to
// list them. `rank`: whose file this is; -1 for a file of all ranks.
std::string distributed_info(const Report& report, Rank rank);

struct TraceGroup {
  std::int64_t size = 0;
  std::string ranks;  // "[0, 1]" as PyTorch writes it; empty for more than 30 members
};

// By the timeline's index of the group's name. Groups the report does not list have the members that the
// timeline shows.
std::vector<TraceGroup> trace_groups(const Report& report);

// Elements that come out of a collective of which `numel` go in.
std::int64_t numel_out(const std::string& op, std::int64_t numel, std::int64_t group_size);

}  // namespace rollcall::viz
