#pragma once

// Lanes: the row of the picture that a span is drawn in. Slices in one row may nest but must not cross, or
// readers drop them; calls in flight at the same time therefore get rows of their own.
//
//   tid 1   program      the rank's own work: computing, calls about groups and on the store, and on gloo the
//                        calls that block it
//   tid 2   world        concurrent calls on `world`: on nccl all calls, on gloo the asynchronous ones
//   tid 3   world (2)    more of them at the same time

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/timeline.h"

namespace rollcall::viz {

// Numbered from 1: Perfetto takes a thread with tid 0 for the process of that number.
using LaneId = std::uint32_t;
inline constexpr LaneId program_lane = 1;

struct TraceLanes {
  struct Lane {
    Rank rank = 0;
    LaneId id = program_lane;
    std::string name;
  };

  std::vector<std::uint32_t> order;  // indexes of the chosen spans, by start, then shorter ones first
  std::vector<LaneId> lane_of;       // by index of the span
  std::vector<Lane> lanes;           // by rank and id; every rank has its program lane
};

// Assigns lanes to the spans with these indexes. `calls_block`: a call that is not asynchronous blocks its
// rank.
TraceLanes assign_lanes(const Timeline& timeline, Rank world_size, bool calls_block,
                        std::vector<std::uint32_t> chosen);

}  // namespace rollcall::viz
