#include "viz/rows/activity.h"

#include <algorithm>
#include <utility>

namespace rollcall::viz {

void unite(Intervals& intervals) {
  std::ranges::sort(intervals, {}, &Interval::start);
  Intervals result;
  for (const Interval& each : intervals) {
    if (each.end <= each.start) {
      continue;
    }
    if (!result.empty() && each.start <= result.back().end) {
      result.back().end = std::max(result.back().end, each.end);
    } else {
      result.push_back(each);
    }
  }
  intervals = std::move(result);
}

Arrivals last_arrivals(const Timeline& timeline) {
  Arrivals last;
  for (const Span& span : timeline.spans()) {
    if (span.kind == Span::Kind::collective) {
      Time& time = last[{span.group, span.seq}];
      time = std::max(time, span.start);
    }
  }
  return last;
}

namespace {

void add(const Span& span, Time end_of_run, const Arrivals& last, RankActivity& rank) {
  const bool is_open = span.end == Span::open;
  const Interval whole{span.start, is_open ? end_of_run : span.end};
  if (span.kind == Span::Kind::compute) {
    rank.compute.push_back(whole);
    return;
  }
  rank.communication.push_back(whole);
  if (is_open) {
    rank.stuck.push_back(whole);
  } else if (span.kind == Span::Kind::host) {
    return;  // all of it is waiting
  } else if (span.kind == Span::Kind::message) {
    rank.transfer.push_back(whole);
  } else {
    rank.transfer.push_back({last.at({span.group, span.seq}), whole.end});
  }
}

}  // namespace

Duration length(const Intervals& intervals) {
  Duration sum = 0;
  for (const Interval& each : intervals) {
    sum += each.end - each.start;
  }
  return sum;
}

Duration overlap(const Intervals& a, const Intervals& b) {
  Duration sum = 0;
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    sum += std::max<Duration>(0, std::min(i->end, j->end) - std::max(i->start, j->start));
    (i->end < j->end ? i : j)++;
  }
  return sum;
}

std::vector<RankActivity> activities_of(const Report& report, Time end) {
  const Arrivals last = last_arrivals(report.timeline);
  std::vector<RankActivity> ranks(static_cast<std::size_t>(report.world_size));
  for (const Span& span : report.timeline.spans()) {
    add(span, end, last, ranks[static_cast<std::size_t>(span.rank)]);
  }
  for (RankActivity& rank : ranks) {
    for (Intervals* each : {&rank.compute, &rank.communication, &rank.transfer, &rank.stuck}) {
      unite(*each);
    }
  }
  return ranks;
}

}  // namespace rollcall::viz
