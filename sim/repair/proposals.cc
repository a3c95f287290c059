#include "sim/repair/proposals.h"

#include <algorithm>
#include <utility>

namespace rollcall::check {

void sort_edits(CallEdits& edits) {
  std::ranges::stable_sort(edits, [](const CallEdit& a, const CallEdit& b) {
    return std::pair(a.rank, a.at) < std::pair(b.rank, b.at);
  });
}

std::vector<Symbol> places_with(const CallLists& lists, Rank rank, const CallEdits& edits) {
  const CallList& own = lists.of(rank);
  std::vector<Symbol> result;
  Places places;
  std::size_t next = 0;
  const auto copy_until = [&](std::size_t end) {
    for (; next < std::min(end, own.calls.size()); ++next) {
      result.push_back(places.next(own.calls[next]));
    }
  };
  for (const CallEdit& edit : edits_of(edits, rank)) {
    copy_until(static_cast<std::size_t>(edit.at));
    for (const ProgramCall& call : edit.inserted) {
      result.push_back(places.next(lists.listed(rank, call)));
    }
    next += static_cast<std::size_t>(edit.dropped);
  }
  copy_until(own.calls.size());
  return result;
}

}  // namespace rollcall::check
