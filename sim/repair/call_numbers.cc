#include "sim/repair/call_numbers.h"

#include <algorithm>
#include <vector>

namespace rollcall::check {

CallNumbers::CallNumbers(const CallLists& lists) : lists_(lists) {
  for (const CallClass& ranks : lists.classes()) {
    for (const Rank rank : ranks) {
      const CallList& own = lists.of(rank);
      for (std::size_t at = 0; at < own.calls.size(); ++at) {
        count(rank, own.program->calls[at], own.calls[at], 1, numbers_);
      }
    }
  }
}

void CallNumbers::count(Rank rank, const ProgramCall& call, const ListedCall& listed, std::int64_t times,
                        Numbers& numbers) {
  numbers[{call.kind, call.dtype, call.numel}][{rank, listed.group, listed.peer}] += times;
}

bool CallNumbers::become_usual(const CallEdits& edits) const {
  Numbers changes;
  for (const CallEdit& edit : edits) {
    const CallList& own = lists_.of(edit.rank);
    for (std::int64_t i = edit.at; i < edit.at + edit.dropped; ++i) {
      const auto at = static_cast<std::size_t>(i);
      count(edit.rank, own.program->calls[at], own.calls[at], -1, changes);
    }
    for (const ProgramCall& call : edit.inserted) {
      count(edit.rank, call, lists_.listed(edit.rank, call), 1, changes);
    }
  }
  for (auto& [call, by_place] : changes) {
    std::erase_if(by_place, [](const auto& change) { return change.second == 0; });
  }
  std::erase_if(changes, [](const auto& change) { return change.second.empty(); });
  return !changes.empty() && std::ranges::all_of(changes, [this](const auto& change) {
    const auto known = numbers_.find(change.first);
    return known != numbers_.end() && becomes_usual(known->second, change.second);
  });
}

// True if all places then have the same number. A single other place does not show what is usual: between two ranks, as
// many messages may be meant each way, or one more.
bool CallNumbers::becomes_usual(const ByPlace& numbers, const ByPlace& changes) {
  const auto is_elsewhere = [&changes](const Place& place) {
    return std::ranges::none_of(changes, [&place](const auto& change) {
      return change.first.group == place.group && (place.peer < 0 || change.first == place);
    });
  };
  const auto number_after = [&changes](const Place& place, std::int64_t before) {
    const auto change = changes.find(place);
    return change == changes.end() ? before : before + change->second;
  };
  const std::int64_t usual = number_after(numbers.begin()->first, numbers.begin()->second);
  int examples = 0;
  for (const auto& [place, number] : numbers) {
    if (number_after(place, number) != usual) {
      return false;
    }
    examples += is_elsewhere(place) ? 1 : 0;
  }
  return examples >= 2 &&
         std::ranges::all_of(changes, [&](const auto& change) { return numbers.contains(change.first); });
}

}  // namespace rollcall::check
