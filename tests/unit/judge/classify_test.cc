
#include "tests/catch.h"
#include "tests/unit/match/evidence_builder.h"

namespace rollcall::check::classify_test {
namespace {

using test::all_reduce;
using test::at_line;
using test::barrier;
using test::EvidenceBuilder;
using State = RankClass::State;

std::vector<std::string> sets_of(const std::vector<RankClass>& classes) {
  std::vector<std::string> sets;
  for (const RankClass& one : classes) {
    sets.push_back(to_string(one.ranks));
  }
  return sets;
}

}  // namespace

TEST_CASE("ranks that finished are one class", "[classify]") {
  EvidenceBuilder run(4);
  run.finishes(RankSet::range(0, 3));
  const auto classes = run.classes();
  REQUIRE(sets_of(classes) == std::vector<std::string>{"0-3"});
  CHECK(classes[0].state == State::finished);
  CHECK_FALSE(classes[0].call.has_value());
}

TEST_CASE("a thousand waiting ranks are one line, with whom they wait for", "[classify]") {
  EvidenceBuilder run(1000);
  run.waits(RankSet::range(0, 999), all_reduce(2));
  run.waits(RankSet::range(1, 999), at_line(12, all_reduce(4)));
  run.finishes({0});
  const auto classes = run.classes();
  REQUIRE(sets_of(classes) == std::vector<std::string>{"0", "1-999"});
  CHECK(classes[1].state == State::waiting);
  CHECK(to_string(classes[1].waits_for) == "0");
  CHECK(call_phrase(*classes[1].call) == "all_reduce #1 on world");
  CHECK(classes[1].call->site == "train.py:12:1");
  CHECK(classes[1].last_completed->seq == 0);
  CHECK(classes[1].last_completed->numel == 2);
}

TEST_CASE("what a reader could tell apart is told apart", "[classify]") {
  EvidenceBuilder run(9);
  run.waits({0, 4}, at_line(10, all_reduce(4)));
  run.waits({1}, at_line(11, all_reduce(4)));
  run.waits({2}, run.labeled("loss", at_line(10, all_reduce(4))));
  run.waits({3}, at_line(10, barrier()));
  run.raises({5, 6}, "ValueError", "bad sample");
  run.raises({7}, "ValueError", "other");
  run.finishes({8});
  const auto classes = run.classes();
  CHECK(sets_of(classes) == std::vector<std::string>{"0,4", "1", "2", "3", "5-6", "7", "8"});
  CHECK(classes[4].exception == "ValueError: bad sample");
  CHECK(classes[2].call->label == "loss");
}

TEST_CASE("ranks that took different numbers of inputs are different", "[classify]") {
  EvidenceBuilder run(3);
  run.finishes({0, 1, 2});
  run.took_inputs({0, 2}, 5);
  run.took_inputs({1}, 6);
  CHECK(sets_of(run.classes()) == std::vector<std::string>{"0,2", "1"});
}

TEST_CASE("a crash is not an exception, and an empty message adds no colon", "[classify]") {
  EvidenceBuilder run(2);
  run.crashes({0}, "");
  run.raises({1}, "KeyError", "");
  const auto classes = run.classes();
  CHECK(classes[0].state == State::crashed);
  CHECK(classes[0].exception == "SIGABRT");
  CHECK(classes[1].state == State::raised);
  CHECK(classes[1].exception == "KeyError");
}

TEST_CASE("classes are ordered by first rank, not by state", "[classify]") {
  EvidenceBuilder run(4);
  run.waits({3, 1}, barrier());
  run.finishes({0});
  run.raises({2}, "ValueError", "x");
  CHECK(sets_of(run.classes()) == std::vector<std::string>{"0", "1,3", "2"});
}

TEST_CASE("the last completed call is that of the group a rank waits in", "[classify]") {
  EvidenceBuilder run(3);
  const GroupId pair = run.group("pair", {0, 1});
  run.waits({0, 1}, test::on(pair, all_reduce(7)));
  run.waits({0}, test::on(pair, barrier()));
  run.waits({2}, barrier());
  run.finishes({1});
  const auto classes = run.classes();
  REQUIRE(sets_of(classes) == std::vector<std::string>{"0", "1", "2"});
  CHECK(classes[0].last_completed->numel == 7);
  CHECK(classes[0].last_completed->group == "pair");
  CHECK_FALSE(classes[2].last_completed.has_value());  // nothing completed on the world yet
  CHECK(to_string(classes[2].waits_for) == "0-1");
}

TEST_CASE("a run that was stopped has ranks that are running", "[classify]") {
  EvidenceBuilder run(2);
  run.waits({0}, barrier());
  const auto classes = run.classes();
  CHECK(classes[0].state == State::waiting);
  CHECK(classes[1].state == State::running);
}

}  // namespace rollcall::check::classify_test
