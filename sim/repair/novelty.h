#pragma once

// Novelty: how irregular a job's calls are. Training repeats itself: steps follow steps, and peers make the same calls
// as their peers. So of two ways to fix a job, the one that leaves fewer different sequences of one, two and three
// calls is likelier.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/repair/call_lists.h"

namespace rollcall::check {

class Novelty {
 public:
  // Before the first call, and after the last.
  static constexpr Symbol nothing = 0xffffffff;

  explicit Novelty(const CallLists& lists);

  // The number of different short sequences of calls in the job.
  std::int64_t count() const { return different_; }
  // The same if these ranks made other calls instead: places, one list for each rank.
  struct Change {
    Rank rank = 0;
    std::vector<Symbol> places;
    std::int64_t ranks = 1;  // that make the same calls, before and after
  };
  std::int64_t count_with(std::span<const Change> changes);
  // How often `next` follows `last` in the job.
  std::int64_t times(Symbol last, Symbol next) const;

 private:
  void add(Rank rank, const std::vector<Symbol>& places, std::int64_t times);

  const CallLists& lists_;
  std::unordered_map<std::uint64_t, std::int64_t> times_;  // never iterated
  std::int64_t different_ = 0;
};

}  // namespace rollcall::check
