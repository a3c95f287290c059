// Schedules as text, and runs that follow them.

#include <string>

#include "sim/c10d/collectives.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/store.h"
#include "sim/engine/simulate.h"
#include "sim/explore/replay.h"
#include "sim/explore/search_tree.h"
#include "tests/catch.h"

namespace rollcall::sim::schedule_test {
namespace {

using Kind = Decision::Kind;

Schedule sample() {
  return {.orders_calls = true,
          .draws_delays = false,
          .decisions = 300,
          .deviations = {
              {0, Kind::branch, 2, 3, 1}, {1, Kind::order, 0, 2, 1}, {299, Kind::thread, 70'000, 200, 199}}};
}

// Two ranks race to set a key; the last value stays.
void race(Rank rank) {
  Store store;
  store.set("winner", std::to_string(rank));
  barrier();
  if (rank == 0) {
    print("last was " + store.get("winner"));
  }
}

Report run_with(Decisions& decisions, void (*program)(Rank) = race) {
  return run_once({.world_size = 2, .backend = "gloo", .decisions = &decisions}, program);
}

}  // namespace

TEST_CASE("a schedule survives being text", "[explore]") {
  CHECK(parse_schedule(to_text(sample())) == sample());
  CHECK(parse_schedule(to_text(Schedule{})) == Schedule{});
  CHECK(to_text(Schedule{}).size() <= 8);
}

TEST_CASE("a schedule says which ranks receive from anyone, many in a row as briefly as one", "[explore]") {
  Schedule schedule = sample();
  const std::size_t without = to_text(schedule).size();
  for (Rank rank = 3; rank < 60'000; ++rank) {
    schedule.receivers.push_back(rank);
  }
  CHECK(parse_schedule(to_text(schedule)) == schedule);
  CHECK(to_text(schedule).size() < without + 10);
  schedule.receivers = {0, 7, 8, 4000};
  CHECK(parse_schedule(to_text(schedule)) == schedule);
}

TEST_CASE("a schedule that was mistyped, cut off or made longer is refused", "[explore]") {
  const std::string text = to_text(sample());
  std::string mistyped = text;
  mistyped[3] = mistyped[3] == 'a' ? 'b' : 'a';
  CHECK_THROWS_AS(parse_schedule(mistyped), BadSchedule);
  CHECK_THROWS_AS(parse_schedule(text.substr(0, text.size() - 1)), BadSchedule);
  CHECK_THROWS_AS(parse_schedule(text + "a"), BadSchedule);
  CHECK_THROWS_AS(parse_schedule("A1"), BadSchedule);
  CHECK_THROWS_AS(parse_schedule(""), BadSchedule);
}

TEST_CASE("a schedule of a later version is told apart from a damaged one", "[explore]") {
  CHECK_THROWS_WITH(parse_schedule("ai" + to_text(sample()).substr(2)), Contains("version 2"));
}

TEST_CASE("every schedule that a search has run can be repeated from its text", "[explore][fiber]") {
  SearchTree tree(true, false, {.reduces = false});
  std::size_t runs = 0;
  do {
    tree.begin();
    const Report report = run_with(tree);
    Replay again(parse_schedule(to_text(tree.schedule())));
    const Report repeated = run_with(again);
    CHECK_FALSE(again.divergence());
    REQUIRE(report.output.size() == 1);
    CHECK(repeated.output.at(0).text == report.output.at(0).text);
    CHECK(repeated.simulated_time == report.simulated_time);
    ++runs;
  } while (tree.advance());
  CHECK(runs == 2);
}

TEST_CASE("a schedule of another program says where the two part", "[explore][fiber]") {
  SearchTree tree(true, false, {.reduces = false});
  tree.begin();
  run_with(tree);
  REQUIRE(tree.advance());
  tree.begin();
  run_with(tree);
  Replay on_nothing(tree.schedule());
  run_with(on_nothing, [](Rank) { barrier(); });
  CHECK(on_nothing.divergence() == "it was made of 1 decisions, and this run makes 0");
  Schedule other = tree.schedule();
  other.deviations.front().ways = 3;
  Replay on_other(other);
  run_with(on_other);
  CHECK_THAT(on_other.divergence().value_or(""),
             Contains("its decision 1 was an order of 3 calls, rank 1 first; here it is an order of 2"));
}

}  // namespace rollcall::sim::schedule_test
