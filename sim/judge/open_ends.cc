#include "sim/judge/open_ends.h"

#include <algorithm>
#include <variant>

namespace rollcall::check {

RankSet ranks_at_open_ends(const Report& report, const RankSet& open) {
  RankSet ranks;
  for (const RankClass& each : report.ranks) {
    if (each.state == RankClass::State::finished) {
      ranks.insert(intersection(each.ranks, open));
    }
  }
  return ranks;
}

bool may_go_on(const Report& report, const RankSet& open) {
  const bool may_wait = std::holds_alternative<Deadlock>(report.verdict) ||
                        std::holds_alternative<ResourceLeak>(report.verdict);
  if (open.empty() || !may_wait) {
    return false;
  }
  RankSet served = ranks_at_open_ends(report, open);  // these may yet make any call
  if (served.empty()) {
    return false;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const RankClass& each : report.ranks) {
      if (each.state == RankClass::State::waiting && !each.waits_for.empty() &&
          !served.contains(each.ranks) && served.contains(each.waits_for)) {
        served.insert(each.ranks);
        changed = true;
      }
    }
  }
  return std::ranges::all_of(report.ranks, [&](const RankClass& each) {
    return each.state == RankClass::State::finished || served.contains(each.ranks);
  });
}

}  // namespace rollcall::check
