#include "sim/c10d/process_group.h"

#include <algorithm>

namespace rollcall {

Rank GroupMembers::rank_of(Rank global) const {
  // Most groups are the world or a run of neighbors: the guess is right without a search.
  if (global >= 0 && global < size() && ranks[static_cast<std::size_t>(global)] == global) {
    return global;
  }
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), global);
  return found != ranks.end() && *found == global ? static_cast<Rank>(found - ranks.begin()) : -1;
}

ProcessGroup ProcessGroup::non_member() {
  static const GroupMembers nobody{.id = world_group, .name = "no group", .ranks = {}};
  return {nobody, -1};
}

}  // namespace rollcall
