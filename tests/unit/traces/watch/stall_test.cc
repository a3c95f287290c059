// When silence is a hang, and when a job is only slow.

#include "traces/watch/stall.h"

#include "tests/catch.h"

namespace rollcall::watch::stall_test {
namespace {

using Activity = RankMoment::Activity;
using State = Stall::State;

// Two ranks: rank 0 waits, rank 1 does not come.
std::vector<RankMoment> waiting(std::uint64_t moves, Activity other = Activity::quiet) {
  return {{0, moves, true}, {1, moves, false, false, other}};
}

// Checks every tenth of a second, and returns the last result.
State pass(Stall& stall, Time& now, Duration time, const std::vector<RankMoment>& ranks) {
  State state = State::moves;
  for (const Time end = now + time; now < end;) {
    now += 100 * millisecond;
    state = stall.look(now, ranks);
  }
  return state;
}

// Returns how long it takes until the silence counts as a hang; at most two minutes.
Duration until_standstill(Stall& stall, Time& now, const std::vector<RankMoment>& ranks) {
  const Time begin = now;
  while (stall.look(now, ranks) != State::stands_still && now - begin < 120 * second) {
    now += 100 * millisecond;
  }
  return now - begin;
}

}  // namespace

TEST_CASE("nothing moves while somebody waits: a standstill after four seconds", "[watch]") {
  Stall stall({});
  Time now = 0;
  CHECK(stall.look(now, waiting(1)) == State::moves);
  CHECK(pass(stall, now, 3900 * millisecond, waiting(1)) == State::silent);
  CHECK(pass(stall, now, 200 * millisecond, waiting(1)) == State::stands_still);
}

TEST_CASE("a job in which nobody waits does not stand still", "[watch]") {
  Stall stall({});
  Time now = 0;
  const std::vector<RankMoment> computing = {{0, 5, false}, {1, 5, false}};
  CHECK(pass(stall, now, 600 * second, computing) == State::moves);
}

TEST_CASE("a job that pauses for three seconds at times is given nine", "[watch]") {
  Stall stall({});
  Time now = 0;
  stall.look(now, waiting(1));
  for (std::uint64_t round = 2; round < 6; ++round) {
    CHECK(pass(stall, now, 3 * second, waiting(round)) != State::stands_still);
  }
  const Duration took = until_standstill(stall, now, waiting(5));
  CHECK(took + 3 * second > 8500 * millisecond);
}

TEST_CASE("a rank that works while others wait is given more time", "[watch]") {
  Stall stall({});
  Time now = 0;
  stall.look(now, waiting(1, Activity::works));
  CHECK(pass(stall, now, 55 * second, waiting(1, Activity::works)) == State::silent);
  CHECK(pass(stall, now, 6 * second, waiting(1, Activity::works)) == State::stands_still);
}

TEST_CASE("a rank that computes at one place for ever is not taken for one that works", "[watch]") {
  Stall stall({});
  Time now = 0;
  CHECK(until_standstill(stall, now, waiting(1, Activity::spins)) <= 5 * second);
}

TEST_CASE("a process that is stopped or gone is reported after two seconds", "[watch]") {
  for (const Activity activity : {Activity::stopped, Activity::gone}) {
    Stall stall({});
    Time now = 0;
    CHECK(until_standstill(stall, now, waiting(1, activity)) <= 2100 * millisecond);
  }
}

TEST_CASE("ranks that wait for others to start are given time to", "[watch]") {
  Stall stall({});
  Time now = 0;
  const std::vector<RankMoment> starting = {{0, 1, true, true}};
  CHECK(pass(stall, now, 20 * second, starting) == State::silent);
  CHECK(pass(stall, now, 5 * second, starting) == State::stands_still);
}

TEST_CASE("what the user says is the limit, whatever the job does", "[watch]") {
  Stall stall({.after = second});
  Time now = 0;
  CHECK(until_standstill(stall, now, waiting(1, Activity::works)) <= 1100 * millisecond);
}

TEST_CASE("a job that went on without a rank that has ended is given the usual time", "[watch]") {
  Stall stall({});
  Time now = 0;
  std::uint64_t moves = 1;
  for (; moves < 30; ++moves) {
    pass(stall, now, 100 * millisecond, waiting(moves, Activity::gone));
  }
  CHECK(until_standstill(stall, now, waiting(moves, Activity::gone)) > 3900 * millisecond);
}

TEST_CASE("a job that goes on says after how long", "[watch]") {
  Stall stall({});
  Time now = 0;
  stall.look(now, waiting(1));
  CHECK(pass(stall, now, 14 * second, waiting(1)) == State::stands_still);
  now += 100 * millisecond;
  CHECK(stall.look(now, waiting(2)) == State::moves);
  CHECK(stall.ended_after() / second == 14);
  now += 100 * millisecond;
  CHECK(stall.look(now, waiting(3)) == State::moves);
  CHECK(stall.ended_after() / second == 14);  // it may have to go on for a while before anybody asks
}

TEST_CASE("a straggler makes pauses, and pauses are no standstill", "[watch]") {
  Stall stall({});
  Time now = 0;
  for (std::uint64_t moves = 0; moves < 200; ++moves) {
    CHECK(pass(stall, now, second, waiting(moves)) != State::stands_still);
  }
}

TEST_CASE("a rank that comes late is a move", "[watch]") {
  Stall stall({});
  Time now = 0;
  stall.look(now, {{0, 1, true, true}});
  pass(stall, now, 10 * second, {{0, 1, true, true}});
  now += 100 * millisecond;
  CHECK(stall.look(now, {{0, 1, true, true}, {1, 1, true, true}}) == State::moves);
}

}  // namespace rollcall::watch::stall_test
