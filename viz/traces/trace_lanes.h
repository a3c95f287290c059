#pragma once

// Lanes: which row of the picture a span is drawn in. Slices of one row may nest but never cross, or
// readers drop them; calls in flight at the same time therefore get rows of their own.
//
//   tid 1   program      what the rank itself does: computing, calls about groups and on the store, and on gloo
//                        calls that block it
//   tid 2   world        calls on `world` that run beside it: on nccl all, on gloo the asynchronous ones
//   tid 3   world (2)    more of them at the same time

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/timeline.h"

namespace rollcall::viz {

// Numbered from 1: with tid 0 Perfetto takes the thread for the process of that number.
using LaneId = std::uint32_t;
inline constexpr LaneId program_lane = 1;

struct TraceLanes {
  struct Lane {
    Rank rank = 0;
    LaneId id = program_lane;
    std::string name;
  };

  std::vector<std::uint32_t> order;  // indexes of the chosen spans, by start; of equal ones the shorter first
  std::vector<LaneId> lane_of;       // by index of the span
  std::vector<Lane> lanes;           // by rank and id; every rank has its program lane
};

// Of the spans with these indexes. `calls_block`: a call that is not asynchronous holds its rank up.
TraceLanes assign_lanes(const Timeline& timeline, Rank world_size, bool calls_block,
                        std::vector<std::uint32_t> chosen);

}  // namespace rollcall::viz
