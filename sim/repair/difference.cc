#include "sim/repair/difference.h"

#include <algorithm>
#include <utility>

namespace rollcall::check {
namespace {

using List = std::span<const std::uint64_t>;

// How far each diagonal (old index - new index) gets with a number of edits, for every number of edits.
class Search {
  static std::ptrdiff_t size(List list) { return static_cast<std::ptrdiff_t>(list.size()); }
  template <typename Values>
  auto& at(Values& values, std::ptrdiff_t diagonal) const {
    return values[static_cast<std::size_t>(diagonal + max_ + 1)];
  }

 public:
  Search(List a, List b, std::size_t edits_max, OpenEnds open)
      : a_(a),
        b_(b),
        open_(open),
        max_(static_cast<std::ptrdiff_t>(std::min(edits_max, a.size() + b.size()))) {}

  // The number of edits, or -1.
  std::ptrdiff_t run() {
    std::vector<std::ptrdiff_t> furthest(static_cast<std::size_t>(2 * max_ + 3), 0);
    for (std::ptrdiff_t edits = 0; edits <= max_; ++edits) {
      for (std::ptrdiff_t diagonal = -edits; diagonal <= edits; diagonal += 2) {
        const bool inserts = diagonal == -edits ||
                             (diagonal != edits && at(furthest, diagonal - 1) < at(furthest, diagonal + 1));
        std::ptrdiff_t x = inserts ? at(furthest, diagonal + 1) : at(furthest, diagonal - 1) + 1;
        x = edits == 0 ? 0 : x;
        while (x < size(a_) && x - diagonal < size(b_) && x - diagonal >= 0 &&
               a_[static_cast<std::size_t>(x)] == b_[static_cast<std::size_t>(x - diagonal)]) {
          ++x;
        }
        at(furthest, diagonal) = x;
        if (is_end(x, x - diagonal)) {
          end_ = {x, x - diagonal};
          trace_.push_back(furthest);
          return edits;
        }
      }
      trace_.push_back(furthest);
    }
    return -1;
  }

  // Collects the edits from the end to the beginning, and joins those that touch.
  std::vector<Hunk> hunks(std::ptrdiff_t edits) const {
    std::vector<Hunk> found;
    auto [x, y] = end_;
    for (; edits > 0; --edits) {
      const std::vector<std::ptrdiff_t>& before = trace_[static_cast<std::size_t>(edits) - 1];
      const std::ptrdiff_t diagonal = x - y;
      const bool inserts =
          diagonal == -edits || (diagonal != edits && at(before, diagonal - 1) < at(before, diagonal + 1));
      const std::ptrdiff_t from_x = inserts ? at(before, diagonal + 1) : at(before, diagonal - 1);
      const std::ptrdiff_t from_y = from_x - (inserts ? diagonal + 1 : diagonal - 1);
      const auto ux = static_cast<std::size_t>(from_x);
      const auto uy = static_cast<std::size_t>(from_y);
      const Hunk edit{ux, inserts ? 0U : 1U, uy, inserts ? 1U : 0U};
      if (!found.empty() && found.back().at == edit.at + edit.dropped &&
          found.back().from == edit.from + edit.inserted) {
        found.back() = {edit.at, edit.dropped + found.back().dropped, edit.from,
                        edit.inserted + found.back().inserted};
      } else {
        found.push_back(edit);
      }
      x = from_x;
      y = from_y;
    }
    std::ranges::reverse(found);
    return found;
  }

 private:
  bool is_end(std::ptrdiff_t x, std::ptrdiff_t y) const {
    const bool is_old_over = x >= size(a_);
    const bool is_new_over = y >= size(b_);
    return (is_old_over && (is_new_over || open_.old_list)) || (is_new_over && open_.new_list);
  }

  List a_;
  List b_;
  OpenEnds open_;
  std::ptrdiff_t max_;
  std::vector<std::vector<std::ptrdiff_t>> trace_;
  std::pair<std::ptrdiff_t, std::ptrdiff_t> end_;
};

}  // namespace

std::optional<std::vector<Hunk>> difference_of(List a, List b, std::size_t edits_max, OpenEnds open) {
  std::size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) {
    ++begin;
  }
  const bool is_open = open.old_list || open.new_list;
  std::size_t end = 0;
  while (!is_open && end < a.size() - begin && end < b.size() - begin &&
         a[a.size() - 1 - end] == b[b.size() - 1 - end]) {
    ++end;
  }
  const List own = a.subspan(begin, a.size() - begin - end);
  const List other = b.subspan(begin, b.size() - begin - end);
  if ((own.empty() && (other.empty() || open.old_list)) || (other.empty() && open.new_list)) {
    return std::vector<Hunk>();
  }
  if (own.empty() || other.empty()) {
    return std::vector<Hunk>{{begin, own.size(), begin, other.size()}};
  }
  Search search(own, other, edits_max, open);
  const std::ptrdiff_t edits = search.run();
  if (edits < 0) {
    return std::nullopt;
  }
  std::vector<Hunk> hunks = search.hunks(edits);
  for (Hunk& hunk : hunks) {
    hunk.at += begin;
    hunk.from += begin;
  }
  return hunks;
}

}  // namespace rollcall::check
