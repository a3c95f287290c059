#include "viz/rows/merged_runs.h"

#include <algorithm>
#include <vector>

namespace rollcall::viz {

namespace {

RankSet shifted(const RankSet& ranks, Rank by) {
  RankSet result;
  for (const Rank rank : ranks.to_vector()) {
    result.insert(rank + by);
  }
  return result;
}

void add_spans(const Timeline& from, Rank by, Timeline& into) {
  const auto same_name = [&](std::uint32_t name) { return into.intern(from.name(name)); };
  for (Span span : from.spans()) {
    span.rank += by;
    span.peer += span.peer < 0 ? 0 : by;
    span.name = same_name(span.name);
    span.group = same_name(span.group);
    span.label = same_name(span.label);
    span.site = same_name(span.site);
    span.arguments = same_name(span.arguments);
    into.add(span);
  }
}

void add_groups(const std::vector<ReportGroup>& from, Rank by, std::vector<ReportGroup>& into) {
  for (const ReportGroup& group : from) {
    auto found = std::ranges::find(into, group.name, &ReportGroup::name);
    if (found == into.end()) {
      found = into.insert(into.end(), {group.name, {}});
    }
    found->ranks.insert(shifted(group.ranks, by));
  }
}

Verdict shifted(Verdict verdict, Rank by) {
  if (Finding* finding = finding_of(verdict)) {
    finding->culprits = shifted(finding->culprits, by);
  }
  return verdict;
}

}  // namespace

Report merged_runs(const Report& first, const Report& second) {
  const Rank by = first.world_size;
  Report merged;
  merged.world_size = first.world_size + second.world_size;
  merged.backend = first.backend;
  merged.torch = first.torch;
  const bool is_first = finding_of(first.verdict) != nullptr;
  merged.verdict = is_first ? first.verdict : shifted(second.verdict, by);
  merged.ranks = first.ranks;
  for (RankClass state : second.ranks) {
    state.ranks = shifted(state.ranks, by);
    state.waits_for = shifted(state.waits_for, by);
    merged.ranks.push_back(std::move(state));
  }
  add_spans(first.timeline, 0, merged.timeline);
  add_spans(second.timeline, by, merged.timeline);
  add_groups(first.groups, 0, merged.groups);
  add_groups(second.groups, by, merged.groups);
  return merged;
}

}  // namespace rollcall::viz
