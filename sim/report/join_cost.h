#pragma once

// JoinCost: what a Join context cost. Ranks that run out of inputs shadow the others until the last has joined;
// how long that took, and what stopping everywhere at once would have saved.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/c10d/op.h"
#include "sim/report/rank_set.h"

namespace rollcall {

// One rank's course through one context.
struct JoinEpisode {
  Rank rank = 0;                  // global
  std::int64_t steps = 0;         // iterations of its own: how often it notified
  std::int64_t shadow_calls = 0;  // collectives it issued for its hooks and for Join
  Time joined = 0;                // it ran out of inputs
  Time left = 0;                  // all ranks had joined
};

// Ranks with the same numbers.
struct JoinedRanks {
  RankSet ranks;
  std::int64_t steps = 0;
  std::int64_t shadow_calls = 0;
  Duration idle = 0;  // from joining until all ranks had

  friend bool operator==(const JoinedRanks&, const JoinedRanks&) = default;
};

// Steps [from, to) were taken by this many ranks: the effective world size.
struct ActiveRanks {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t ranks = 0;

  friend bool operator==(const ActiveRanks&, const ActiveRanks&) = default;
};

struct JoinCost {
  std::string group;
  std::vector<JoinedRanks> ranks;   // by first rank
  std::vector<ActiveRanks> active;  // in order
  std::int64_t size = 0;            // ranks of the group
  std::int64_t steps = 0;           // of the rank with the most inputs
  std::int64_t fewest_steps = 0;
  std::int64_t steps_of_all = 0;
  Duration shadowing = 0;  // from the first rank's joining until all ranks had
  Duration run = 0;        // the whole run

  // Calculates what follows from `ranks` and `steps`.
  void sum_up();
  bool is_uneven() const { return fewest_steps < steps; }
  // In tenths of a percent, rounded: inputs that would be lost if every rank stopped with the first, and the
  // time that would be saved; and a thousand times the mean effective world size.
  std::int64_t inputs_lost_permille() const;
  std::int64_t time_saved_permille() const;
  std::int64_t mean_active_thousandths() const;
  // What stopping with the first rank would lose and save. Empty when inputs are even.
  std::string advice() const;
};

// episodes: of one context, one per rank of the group.
JoinCost join_cost(std::string group, const std::vector<JoinEpisode>& episodes, Duration run);

// "15.4 %" of 154.
std::string percent_phrase(std::int64_t permille);

}  // namespace rollcall
