#pragma once

// Events in simulated time. Events at the same time keep the order in which they were added:
// there is never a tie, so never a choice that depends on the heap.

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

  // Removes all that equal `event`. Takes time linear in the number of events.
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
