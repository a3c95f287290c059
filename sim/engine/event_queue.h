#pragma once

// What happens when, in simulated time. Events at one time keep the order in which they were added:
// never a tie, so never a choice that depends on the heap.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/time.h"

namespace rollcall::sim {

template <typename Event>
class EventQueue {
 public:
  void add(Time at, const Event& event) {
    heap_.push_back({at, added_++, event});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  bool empty() const { return heap_.empty(); }
  Time next_time() const { return heap_.front().at; }

  // All that equal `event`. As long as a look at each.
  void remove(const Event& event) {
    std::erase_if(heap_, [&event](const Entry& entry) { return entry.event == event; });
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back().event;
    heap_.pop_back();
    return event;
  }

 private:
  struct Entry {
    Time at;
    std::uint64_t number;
    Event event;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.number > b.number;
  }

  std::vector<Entry> heap_;
  std::uint64_t added_ = 0;
};

}  // namespace rollcall::sim
