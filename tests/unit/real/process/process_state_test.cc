// What processes are doing, according to /proc.

#include "real/process/process_state.h"

#include <ctime>

#include <unistd.h>

#include "real/process/process.h"
#include "tests/catch.h"

namespace rollcall::real::process_state_test {

TEST_CASE("the computing of a worker is told apart from that of the process that waits for it", "[watch]") {
  const auto grown = [](std::uint64_t own, std::uint64_t workers) {
    ProcessState before;
    ProcessState after;
    after.cpu_ticks = own;
    after.workers_ticks = workers;
    return effort(before, after, second);
  };
  CHECK(grown(90, 0).computes);
  CHECK_FALSE(grown(90, 0).workers_compute);
  CHECK(grown(0, 90).workers_compute);
  CHECK_FALSE(grown(0, 90).computes);
  CHECK_FALSE(grown(3, 3).workers_compute);
}

TEST_CASE("a process that gets no processor computes, and one that wakes now and then does not", "[watch]") {
  ProcessState before;
  ProcessState after;
  before.runnable_ns = 50;
  after.runnable_ns = 50 + 300 * millisecond;
  CHECK_FALSE(effort(before, after, second).computes);
  after.runnable_ns = 50 + 900 * millisecond;
  CHECK(effort(before, after, second).computes);
}

TEST_CASE("a worker that gets no processor computes, and one that wakes now and then does not", "[watch]") {
  ProcessState before;
  ProcessState after;
  before.workers_runnable_ns = {{1, 50}, {2, 70}};
  after.workers_runnable_ns = {
      {1, 50 + 300 * millisecond}, {2, 70 + 300 * millisecond}, {3, 900 * millisecond}};
  CHECK_FALSE(effort(before, after, second).workers_compute);
  after.workers_runnable_ns[2] = 70 + 900 * millisecond;
  CHECK(effort(before, after, second).workers_compute);
  CHECK_FALSE(effort(before, after, second).computes);
}

TEST_CASE("what a worker has used counts when it has ended, too", "[watch]") {
  const pid_t self = ::getpid();
  const std::uint64_t before = process_state(self).workers_ticks;
  real::ChildProcess compiler([] {
    while (std::clock() < CLOCKS_PER_SEC / 5) {
    }
    ::_exit(0);
  });
  for (bool is_seen = false; !is_seen;) {
    is_seen = !process_state(self).workers_runnable_ns.empty();
  }
  compiler.wait();
  CHECK(process_state(self).workers_ticks >= before + 15);
}

}  // namespace rollcall::real::process_state_test
