#include "scenarios/run/decisions.h"

#include <algorithm>

namespace rollcall::scenario {

std::size_t Decisions::take(Rank rank, std::size_t ways) {
  const Point point{rank, taken_[rank]++};
  met_.emplace(point, ways);
  const auto planned = plan_.find(point);
  // A plan made for another course of events may ask for a way that is not there.
  return planned == plan_.end() ? 0 : std::min(planned->second, ways - 1);
}

}  // namespace rollcall::scenario
