#pragma once

// When every rank did what, from a timeline: the basis of profiles and charts.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

struct Interval {
  Time start = 0;
  Time end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Disjoint and ascending.
using Intervals = std::vector<Interval>;

// Makes intervals disjoint and ascending.
void unite(Intervals& intervals);

Duration length(const Intervals& intervals);
// How long both are active at the same time.
Duration overlap(const Intervals& a, const Intervals& b);

// When the last member reached each collective, by group and number.
using Arrivals = std::map<std::pair<std::uint32_t, std::int64_t>, Time>;
Arrivals last_arrivals(const Timeline& timeline);

struct RankActivity {
  Intervals compute;
  Intervals communication;  // including calls about groups and on the store
  Intervals transfer;       // the part of communication after the last rank arrived
  Intervals stuck;          // the part in calls that never returned
};

// The activities of the report's timeline, by rank. A call that never returned lasts until `end` and transfers
// nothing. A message is all transfer: its span does not say whether its other end had arrived.
std::vector<RankActivity> activities_of(const Report& report, Time end);

}  // namespace rollcall::viz
