#include "sim/explore/replay.h"

#include <fmt/core.h>

#include "sim/base/expects.h"

namespace rollcall::sim {
namespace {

// "a choice of rank 2 among 3"
std::string phrase(Decision::Kind kind, Rank rank, std::size_t ways) {
  if (kind == Decision::Kind::order) {
    return fmt::format("an order of {} calls, rank {} first", ways, rank);
  }
  return fmt::format("a {} of rank {} among {}", to_string(kind), rank, ways);
}

std::string met_phrase(const Decision& decision, std::size_t way) {
  const bool is_order = decision.kind == Decision::Kind::order;
  if (is_order && way >= decision.ways) {
    return fmt::format("an order of {} calls", decision.ways);
  }
  return phrase(decision.kind, is_order ? decision.contenders[way].rank : decision.rank, decision.ways);
}

}  // namespace

std::size_t Replay::choose(const Decision& decision) {
  if (decision.ways <= 1 || divergence_ || next_ == followed_.deviations.size() ||
      followed_.deviations[next_].index != schedule().decisions) {
    return 0;
  }
  const Deviation& planned = followed_.deviations[next_++];
  expects(planned.way > 0 && planned.way < planned.ways, "a deviation takes another way than the usual one");
  const bool is_order = planned.kind == Decision::Kind::order;
  const bool fits = decision.kind == planned.kind && decision.ways == planned.ways &&
                    (is_order ? decision.contenders[planned.way].rank : decision.rank) == planned.rank;
  if (!fits) {
    divergence_ =
        fmt::format("its decision {} was {}; here it is {}", planned.index + 1,
                    phrase(planned.kind, planned.rank, planned.ways), met_phrase(decision, planned.way));
    return 0;
  }
  return planned.way;
}

std::optional<std::string> Replay::divergence() const {
  if (divergence_ || schedule().decisions == followed_.decisions) {
    return divergence_;
  }
  return fmt::format("it was made of {} decisions, and this run makes {}", followed_.decisions,
                     schedule().decisions);
}

}  // namespace rollcall::sim
