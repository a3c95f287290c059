#include "sim/judge/open_ends.h"

#include <algorithm>
#include <variant>

namespace rollcall::check {

bool may_go_on(const Report& report, const RankSet& open) {
  const bool may_wait = std::holds_alternative<Deadlock>(report.verdict) ||
                        std::holds_alternative<ResourceLeak>(report.verdict);
  if (open.empty() || !may_wait) {
    return false;
  }
  using State = RankClass::State;
  RankSet served;  // these may yet make any call
  for (const RankClass& each : report.ranks) {
    if (each.state == State::finished) {
      served.insert(difference(each.ranks, difference(each.ranks, open)));
    }
  }
  if (served.empty()) {
    return false;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const RankClass& each : report.ranks) {
      if (each.state == State::waiting && !each.waits_for.empty() &&
          !difference(each.ranks, served).empty() && difference(each.waits_for, served).empty()) {
        served.insert(each.ranks);
        changed = true;
      }
    }
  }
  return std::ranges::all_of(report.ranks, [&](const RankClass& each) {
    return each.state == State::finished || difference(each.ranks, served).empty();
  });
}

}  // namespace rollcall::check
