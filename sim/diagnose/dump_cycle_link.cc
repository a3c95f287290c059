#include "sim/diagnose/dump_cycle_link.h"

#include <algorithm>
#include <utility>

namespace rollcall::check {

namespace {

constexpr std::size_t nodes_tried_max = 64;

using Cycle = std::vector<const WaitNode*>;

// True if all other ranks would continue if the ranks in `node` did.
bool ends_without(const Cycle& cycle, const RankSet& ranks, const WaitNode* node) {
  RankSet stuck = difference(ranks, ranks_of(*node));
  for (bool moved = true; moved && !stuck.empty();) {
    moved = false;
    for (const WaitNode* other : cycle) {
      const bool waits =
          stuck.contains(other->ranks.front()) &&
          std::any_of(other->blockers.begin(), other->blockers.end(),
                      [&stuck](const Blocker& blocker) { return stuck.contains(blocker.rank); });
      if (!waits && stuck.contains(other->ranks.front())) {
        stuck = difference(stuck, ranks_of(*other));
        moved = true;
      }
    }
  }
  return stuck.empty();
}

}  // namespace

const WaitNode* node_held_by_fewest(const DumpCase& job, const Cycle& cycle) {
  if (cycle.size() > nodes_tried_max) {
    return nullptr;
  }
  RankSet ranks;
  for (const WaitNode* node : cycle) {
    ranks.insert(ranks_of(*node));
  }
  const auto extent = [&job](const WaitNode* node) {
    return std::make_pair(node->blockers.size(), job.view.job.groups[node->group].members.size());
  };
  const WaitNode* fewest = nullptr;
  bool is_alone = false;
  for (const WaitNode* node : cycle) {
    // If more ranks are missing than have made the call, the ranks that made it do what the others do not.
    if (node->blockers.size() > node->ranks.size() || !ends_without(cycle, ranks, node)) {
      continue;
    }
    is_alone =
        fewest == nullptr || extent(node) < extent(fewest) || (is_alone && extent(node) != extent(fewest));
    fewest = fewest == nullptr || extent(node) < extent(fewest) ? node : fewest;
  }
  return is_alone ? fewest : nullptr;
}

}  // namespace rollcall::check
