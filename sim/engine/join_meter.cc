#include "sim/engine/join_meter.h"

namespace rollcall::sim {

void JoinMeter::joined(Rank rank, Time at, Rank ranks) {
  open_.resize(static_cast<std::size_t>(ranks));
  open_[static_cast<std::size_t>(rank)] = {at, false};
}

void JoinMeter::left(Rank rank, GroupId group, std::int64_t steps, std::int64_t shadow_calls, Time at) {
  std::vector<std::vector<JoinEpisode>>& contexts = met_[group];
  const std::size_t context = count_[{group, rank}]++;
  if (contexts.size() <= context) {
    contexts.resize(context + 1);
  }
  contexts[context].push_back({rank, steps, shadow_calls, open_[static_cast<std::size_t>(rank)].joined, at});
}

std::vector<JoinCost> JoinMeter::costs(const std::deque<GroupMembers>& groups, Duration run) const {
  std::vector<JoinCost> costs;
  for (const auto& [group, contexts] : met_) {
    for (const std::vector<JoinEpisode>& episodes : contexts) {
      if (static_cast<Rank>(episodes.size()) == groups[group].size()) {
        costs.push_back(join_cost(groups[group].name, episodes, run));
      }
    }
  }
  return costs;
}

}  // namespace rollcall::sim
