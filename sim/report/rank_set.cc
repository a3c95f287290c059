#include "sim/report/rank_set.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "sim/base/expects.h"

namespace rollcall {

RankSet::RankSet(std::initializer_list<Rank> ranks) : RankSet(of(std::vector<Rank>(ranks))) {}

RankSet RankSet::of(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());  // then every insertion is at the end
  RankSet set;
  for (Rank rank : ranks) {
    set.insert(rank);
  }
  return set;
}

RankSet RankSet::range(Rank first, Rank last) {
  RankSet set;
  if (first <= last) {
    set.ranges_.push_back({first, last});
  }
  return set;
}

namespace {

// Appends `next`, which begins no earlier than the last range, joining the two where they touch.
void append(std::vector<RankSet::Range>& ranges, RankSet::Range next) {
  expects(next.first <= next.last, "a range of ranks is not empty");
  expects(ranges.empty() || ranges.back().first <= next.first, "ranges are appended in order");
  if (ranges.empty() || next.first - ranges.back().last > 1) {
    ranges.push_back(next);
  } else {
    ranges.back().last = std::max(ranges.back().last, next.last);
  }
}

bool starts_earlier(const RankSet::Range& a, const RankSet::Range& b) { return a.first < b.first; }

}  // namespace

void RankSet::insert(Rank rank) {
  if (empty() || ranges_.back().first <= rank) {
    append(ranges_, {rank, rank});
  } else {
    insert(range(rank, rank));
  }
}

void RankSet::insert(const RankSet& other) {
  if (other.empty() || &other == this) {
    return;
  }
  if (empty() || ranges_.back().first <= other.ranges_.front().first) {  // sets are often built in order
    for (const Range& range : other.ranges_) {
      append(ranges_, range);
    }
    return;
  }
  std::vector<Range> sorted;
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
             std::back_inserter(sorted), starts_earlier);
  ranges_.clear();
  for (const Range& range : sorted) {
    append(ranges_, range);
  }
}

std::size_t RankSet::size() const {
  std::size_t count = 0;
  for (const Range& range : ranges_) {
    count += static_cast<std::size_t>(range.last - range.first) + 1;
  }
  return count;
}

bool RankSet::contains(Rank rank) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), Range{rank, rank}, starts_earlier);
  return after != ranges_.begin() && rank <= std::prev(after)->last;
}

bool RankSet::contains(const RankSet& others) const { return difference(others, *this).empty(); }

bool RankSet::meets(const RankSet& others) const { return difference(*this, others) != *this; }

std::vector<Rank> RankSet::to_vector() const {
  std::vector<Rank> ranks;
  ranks.reserve(size());
  for (const Range& range : ranges_) {
    for (Rank rank = range.first; rank <= range.last; ++rank) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

RankSet difference(const RankSet& a, const RankSet& b) {
  RankSet result;
  auto hole = b.ranges().begin();
  for (const RankSet::Range& range : a.ranges()) {
    Rank first = range.first;
    while (hole != b.ranges().end() && hole->last < first) {
      ++hole;
    }
    for (auto cut = hole; cut != b.ranges().end() && cut->first <= range.last; ++cut) {
      result.insert(RankSet::range(first, cut->first - 1));
      first = cut->last + 1;
    }
    result.insert(RankSet::range(first, range.last));
  }
  return result;
}

RankSet intersection(const RankSet& a, const RankSet& b) { return difference(a, difference(a, b)); }

namespace {

std::string to_string(const RankSet::Range& range) {
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

std::string join_ranges(const RankSet& ranks, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : ",";
    text += to_string(ranks.ranges()[i]);
  }
  return text;
}

}  // namespace

std::string to_string(const RankSet& ranks) {
  return ranks.empty() ? "none" : join_ranges(ranks, ranks.ranges().size());
}

std::string ranks_phrase(const RankSet& ranks) {
  constexpr std::size_t readable = 8;  // more ranges than this say less than their number does
  if (ranks.empty()) {
    return "no rank";
  }
  if (ranks.ranges().size() > readable) {
    return fmt::format("{} ranks ({},...)", ranks.size(), join_ranges(ranks, readable - 2));
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", to_string(ranks));
}

}  // namespace rollcall
