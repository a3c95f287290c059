#include "sim/engine/event_queue.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace rollcall::sim::event_queue_test {
namespace {

std::vector<int> drain(EventQueue<int>& queue) {
  std::vector<int> events;
  while (!queue.empty()) {
    events.push_back(queue.pop());
  }
  return events;
}

}  // namespace

TEST_CASE("events come in the order of their times", "[event_queue]") {
  EventQueue<int> queue;
  for (const int at : {50, 10, 40, 20, 30}) {
    queue.add(at, at);
  }
  CHECK(queue.next_time() == 10);
  CHECK(drain(queue) == std::vector<int>{10, 20, 30, 40, 50});
}

TEST_CASE("events of one instant come in the order in which they were added", "[event_queue]") {
  EventQueue<int> queue;
  std::vector<int> added;
  for (int i = 0; i < 100; ++i) {
    queue.add(7, i);
    added.push_back(i);
  }
  CHECK(drain(queue) == added);
}

TEST_CASE("what is added while events are taken keeps its place", "[event_queue]") {
  EventQueue<std::string> queue;
  queue.add(5, "first at 5");
  queue.add(9, "at 9");
  CHECK(queue.pop() == "first at 5");
  queue.add(9, "later at 9");
  queue.add(5, "second at 5");
  CHECK(queue.pop() == "second at 5");
  CHECK(queue.pop() == "at 9");
  CHECK(queue.pop() == "later at 9");
  CHECK(queue.empty());
}

}  // namespace rollcall::sim::event_queue_test
