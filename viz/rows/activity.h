#pragma once

// What every rank was doing when, from a timeline: the common ground of profiles and charts.

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

// Makes any intervals so.
void unite(Intervals& intervals);

Duration length(const Intervals& intervals);
// How long both are under way.
Duration overlap(const Intervals& a, const Intervals& b);

// When the last member came to each collective, by group and number.
using Arrivals = std::map<std::pair<std::uint32_t, std::int64_t>, Time>;
Arrivals last_arrivals(const Timeline& timeline);

struct RankActivity {
  Intervals compute;
  Intervals communication;  // and calls about groups and on the store
  Intervals transfer;       // the part of communication after the last rank had come
  Intervals stuck;          // the part in calls that never returned
};

// By rank, of the report's timeline. A call that never returned lasts to `end`, and transfers nothing. A
// message is all transfer: whether its other end had come is not in its span.
std::vector<RankActivity> activities_of(const Report& report, Time end);

}  // namespace rollcall::viz
