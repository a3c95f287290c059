#pragma once

// A set of ranks that prints short: "0-3,8". A report on 1,000 ranks must not print 1,000 lines.

#include <cstddef>
#include <string>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

class RankSet {
 public:
  struct Range {
    Rank first = 0;
    Rank last = 0;  // inclusive
    friend bool operator==(const Range&, const Range&) = default;
  };

  RankSet() = default;
  RankSet(std::initializer_list<Rank> ranks);
  // Any order, duplicates allowed.
  static RankSet of(std::vector<Rank> ranks);
  static RankSet range(Rank first, Rank last);

  // Cheapest in ascending order.
  void insert(Rank rank);
  void insert(const RankSet& other);

  bool empty() const { return ranges_.empty(); }
  std::size_t size() const;
  bool contains(Rank rank) const;
  bool contains(const RankSet& others) const;  // all of them
  bool meets(const RankSet& others) const;     // at least one of them is in both
  Rank first() const { return ranges_.front().first; }
  const std::vector<Range>& ranges() const { return ranges_; }  // ascending, with gaps between
  std::vector<Rank> to_vector() const;

  friend bool operator==(const RankSet&, const RankSet&) = default;

 private:
  std::vector<Range> ranges_;
};

RankSet difference(const RankSet& a, const RankSet& b);
RankSet intersection(const RankSet& a, const RankSet& b);

std::string to_string(const RankSet& ranks);  // "0-3,8"; "none" when empty
// "rank 0", "ranks 1-3"; the caller capitalizes it at the beginning of a sentence. A set of many ranges is unreadable
// and becomes "500 ranks (0,2,4,6,8,10,...)".
std::string ranks_phrase(const RankSet& ranks);

}  // namespace rollcall
