#include "sim/explore/planned_decisions.h"

#include <algorithm>

namespace rollcall::sim {

std::size_t PlannedDecisions::choose(const Decision& decision) {
  const Point point{decision.rank, count_[decision.rank]++};
  taken_.emplace(point, decision.ways);
  const auto planned = plan_.find(point);
  // A plan made for a different run may ask for a way that does not exist.
  return planned == plan_.end() ? 0 : std::min(planned->second, decision.ways - 1);
}

}  // namespace rollcall::sim
