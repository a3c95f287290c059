#pragma once

// How a running job is doing: how many steps and calls per second, and which rank the others wait for. Pure: times and
// looks come from outside.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "traces/watch/stall.h"

namespace rollcall::watch {

// "850 ms", "14 s", "1 min 3 s", "2 h 5 min".
std::string elapsed_phrase(Duration duration);

class Pulse {
 public:
  // Times never go back. `steps`: how often the program's optimizer has stepped so far; 0 if unknown.
  void look(Time now, const std::vector<RankMoment>& ranks, std::uint64_t steps);

  // The rank that was in no call in most looks in which others waited. Empty if it is not always the same rank.
  std::optional<Rank> last() const { return last_; }

  // One line for a terminal: "4 ranks  3.1 steps/s  212 calls/s per rank  last: rank 2, for 14 s".
  std::string line(Time now, Duration silence) const;

 private:
  struct Look {
    Time at = 0;
    std::uint64_t moves = 0;  // of all ranks
    std::uint64_t steps = 0;
    std::vector<Rank> awaited;  // empty: no rank waited, or too many were awaited to say
  };

  std::optional<Rank> find_last() const;

  std::deque<Look> looks_;  // of the last seconds
  std::size_t ranks_ = 0;
  std::optional<Rank> last_;
  Time last_since_ = 0;
};

}  // namespace rollcall::watch
