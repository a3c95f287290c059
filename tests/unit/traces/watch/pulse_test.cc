// The line about a running job: its speed, and the rank that the others wait for.

#include "traces/watch/pulse.h"

#include "tests/catch.h"

namespace rollcall::watch::pulse_test {
namespace {

// Takes ten samples a second of four ranks that each make ten calls and two steps a second. Rank `late` computes while
// the others wait.
void pass(Pulse& pulse, Time& now, Duration time, Rank late, std::uint64_t& calls) {
  for (const Time end = now + time; now < end;) {
    now += 100 * millisecond;
    ++calls;
    std::vector<RankMoment> ranks;
    for (Rank rank = 0; rank < 4; ++rank) {
      ranks.push_back({rank, 2 * calls, rank != late});
    }
    pulse.look(now, ranks, calls / 5);
  }
}

}  // namespace

TEST_CASE("steps and calls are counted by the second", "[watch]") {
  Pulse pulse;
  CHECK(pulse.line(0, 0) == "no rank has started");
  Time now = 0;
  std::uint64_t calls = 0;
  pass(pulse, now, 10 * second, -1, calls);
  CHECK(pulse.line(now, 0) == "4 ranks  2.00 steps/s  10.0 calls/s per rank");
  CHECK(pulse.line(now + 3 * second, 3 * second) ==
        "4 ranks  2.00 steps/s  10.0 calls/s per rank  nothing has moved for 3 s");
}

TEST_CASE("the rank that the others wait for is last, and since when is said", "[watch]") {
  Pulse pulse;
  Time now = 0;
  std::uint64_t calls = 0;
  pass(pulse, now, 10 * second, 2, calls);
  CHECK(pulse.last() == 2);
  CHECK_THAT(pulse.line(now, 0), EndsWith("last: rank 2, for 9 s"));
  pass(pulse, now, 10 * second, 1, calls);
  CHECK(pulse.last() == 1);
}

TEST_CASE("ranks that take turns have no last one", "[watch]") {
  Pulse pulse;
  Time now = 0;
  std::uint64_t calls = 0;
  for (int turn = 0; turn < 80; ++turn) {
    pass(pulse, now, 100 * millisecond, turn % 4, calls);
  }
  CHECK_FALSE(pulse.last());
}

TEST_CASE("a rank that comes late to the job does not count as speed", "[watch]") {
  Pulse pulse;
  pulse.look(0, {{0, 1000, false}}, 0);
  pulse.look(second, {{0, 1002, false}, {1, 5000, false}}, 0);
  pulse.look(2 * second, {{0, 1006, false}, {1, 5004, false}}, 0);
  CHECK(pulse.line(2 * second, 0) == "2 ranks  2.00 calls/s per rank");
}

TEST_CASE("times are said in the units that a person would take", "[watch]") {
  CHECK(elapsed_phrase(850 * millisecond) == "850 ms");
  CHECK(elapsed_phrase(14 * second) == "14 s");
  CHECK(elapsed_phrase(63 * second) == "1 min 3 s");
  CHECK(elapsed_phrase(7500 * second) == "2 h 5 min");
}

}  // namespace rollcall::watch::pulse_test
