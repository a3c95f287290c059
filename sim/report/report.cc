#include "sim/report/report.h"

#include "sim/base/expects.h"

namespace rollcall {

std::string_view to_string(RankClass::State state) {
  switch (state) {
    case RankClass::State::finished:
      return "finished";
    case RankClass::State::waiting:
      return "waiting";
    case RankClass::State::raised:
      return "raised";
    case RankClass::State::crashed:
      return "crashed";
    case RankClass::State::running:
      return "running";
  }
  expects(false, "a rank's state is one of the enumerators");
  return {};
}

const RankClass& Report::of(Rank rank) const {
  for (const RankClass& group : ranks) {
    if (group.ranks.contains(rank)) {
      return group;
    }
  }
  fail_expectation("every rank of a run belongs to one class", std::source_location::current());
}

}  // namespace rollcall
