#pragma once

// JoinMeter: times every rank's way through its Join contexts. On a GPU, a rank has joined when its device
// reaches the first shadow call, not when its host has queued it.

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/c10d/process_group.h"
#include "sim/report/join_cost.h"

namespace rollcall::sim {

class JoinMeter {
 public:
  // `ranks`: how many the run has.
  void joined(Rank rank, Time at, Rank ranks);
  // The rank's device has reached a shadow call.
  void came(Rank rank, Time at) {
    if (!open_.empty() && open_[static_cast<std::size_t>(rank)].awaits_device) {
      open_[static_cast<std::size_t>(rank)] = {at, false};
    }
  }
  // The next call of `came` sets the time at which the rank joined.
  void await_device(Rank rank) { open_[static_cast<std::size_t>(rank)].awaits_device = true; }
  void left(Rank rank, GroupId group, std::int64_t steps, std::int64_t shadow_calls, Time at);

  // The costs of all contexts that all members have left, by group.
  std::vector<JoinCost> costs(const std::deque<GroupMembers>& groups, Duration run) const;

 private:
  struct Open {
    Time joined = 0;
    bool awaits_device = false;
  };

  std::vector<Open> open_;                                        // by rank; empty until one has joined
  std::map<GroupId, std::vector<std::vector<JoinEpisode>>> met_;  // by context, in order
  std::map<std::pair<GroupId, Rank>, std::size_t> count_;         // contexts that the rank has left
};

}  // namespace rollcall::sim
