#include "sim/match/wait_graph.h"

#include "tests/catch.h"
#include "tests/unit/match/evidence_builder.h"

namespace rollcall::check::wait_graph_test {
namespace {

using test::barrier;
using test::EvidenceBuilder;
using test::on;

Blame blame(const EvidenceBuilder& run) {
  const Evidence evidence = run.evidence();
  return find_blame(evidence, blocked_slots(evidence));
}

}  // namespace

TEST_CASE("ranks in one slot are one node, however many they are", "[wait_graph]") {
  EvidenceBuilder run(1000);
  run.waits(RankSet::range(1, 999), barrier());
  run.finishes({0});
  const auto slots = blocked_slots(run.evidence());
  REQUIRE(slots.size() == 1);
  CHECK(slots[0].waiting.size() == 999);
  CHECK(slots[0].missing == std::vector<Rank>{0});
  CHECK(slots[0].next.empty());
  CHECK(blame(run).culprits == std::vector<Rank>{0});
  CHECK_FALSE(blame(run).cycle);
}

TEST_CASE("nobody blocked, nothing to blame", "[wait_graph]") {
  EvidenceBuilder run(2);
  run.waits({0, 1}, barrier());
  run.finishes({0, 1});
  CHECK(blocked_slots(run.evidence()).empty());
  CHECK(blame(run).slots.empty());
}

TEST_CASE("blame follows the chain to the rank that waits for nobody", "[wait_graph]") {
  EvidenceBuilder run(4);
  const GroupId low = run.group("low", {0, 1});
  const GroupId middle = run.group("middle", {1, 2});
  const GroupId high = run.group("high", {2, 3});
  run.waits({0}, on(low, barrier()));     // for rank 1,
  run.waits({1}, on(middle, barrier()));  // which waits for rank 2,
  run.waits({2}, on(high, barrier()));    // which waits for rank 3,
  run.finishes({3});                      // which is gone.
  const auto slots = blocked_slots(run.evidence());
  REQUIRE(slots.size() == 3);
  CHECK(slots[0].next == std::vector<std::size_t>{1});
  CHECK(slots[1].next == std::vector<std::size_t>{2});
  CHECK(slots[2].next.empty());
  CHECK(blame(run).culprits == std::vector<Rank>{3});
  CHECK(blame(run).slots == std::vector<std::size_t>{2});
}

TEST_CASE("two groups taken in opposite order are a cycle of two slots", "[wait_graph]") {
  EvidenceBuilder run(2);
  const GroupId a = run.group("a", {0, 1});
  const GroupId b = run.group("b", {0, 1});
  run.waits({0}, on(a, barrier()));
  run.waits({1}, on(b, barrier()));
  CHECK(blame(run).cycle);
  CHECK(blame(run).culprits == std::vector<Rank>{0, 1});
  CHECK(blame(run).slots == std::vector<std::size_t>{0, 1});
}

TEST_CASE("bystanders of a cycle are not in it", "[wait_graph]") {
  EvidenceBuilder run(4);
  const GroupId a = run.group("a", {1, 2});
  const GroupId b = run.group("b", {1, 2});
  run.waits({0, 3}, barrier());
  run.waits({1}, on(a, barrier()));
  run.waits({2}, on(b, barrier()));
  CHECK(blame(run).cycle);
  CHECK(blame(run).culprits == std::vector<Rank>{1, 2});
  CHECK(blame(run).slots == std::vector<std::size_t>{1, 2});
}

TEST_CASE("of two separate cycles the first is shown, and the ranks of both are to blame", "[wait_graph]") {
  EvidenceBuilder run(4);
  const GroupId a = run.group("a", {2, 3});
  const GroupId b = run.group("b", {2, 3});
  const GroupId c = run.group("c", {0, 1});
  const GroupId d = run.group("d", {0, 1});
  run.waits({2}, on(a, barrier()));
  run.waits({3}, on(b, barrier()));
  run.waits({0}, on(c, barrier()));
  run.waits({1}, on(d, barrier()));
  CHECK(blame(run).culprits == std::vector<Rank>{0, 1, 2, 3});
  CHECK(blame(run).slots == std::vector<std::size_t>{0, 1});
  CHECK(blame(run).shortest == std::vector<Rank>{2, 3});
  CHECK(blame(run).cycles == 2);
}

TEST_CASE("a rank that waits in a cycle without being waited for is a victim of it", "[wait_graph]") {
  EvidenceBuilder run(3);
  const GroupId pair = run.group("pair", {0, 1});
  run.waits({0}, on(pair, barrier()));  // for rank 1,
  run.waits({1, 2}, barrier());         // which waits for rank 0, as rank 2 does
  CHECK(blame(run).cycle);
  CHECK(blame(run).culprits == std::vector<Rank>{0, 1});
}

TEST_CASE("of cycles with common ranks the shortest is shown", "[wait_graph]") {
  EvidenceBuilder run(3);
  const GroupId a = run.group("a", {0, 1});
  const GroupId b = run.group("b", {1, 2});
  run.waits({0}, on(a, barrier()));  // for rank 1,
  run.waits({1}, on(b, barrier()));  // which waits for rank 2,
  run.waits({2}, barrier());         // which waits for both
  CHECK(blame(run).culprits == std::vector<Rank>{0, 1, 2});
  CHECK(blame(run).shortest == std::vector<Rank>{1, 2});
  CHECK(blame(run).slots == std::vector<std::size_t>{0, 2});
}

TEST_CASE("a slot that misses only ranks that are gone comes before one that misses others, too",
          "[wait_graph]") {
  EvidenceBuilder run(3);
  const GroupId pair = run.group("pair", {1, 2});
  run.waits({0}, barrier());            // for ranks 1 and 2,
  run.waits({1}, on(pair, barrier()));  // and 1 for rank 2,
  run.finishes({2});                    // which is gone.
  CHECK(blame(run).culprits == std::vector<Rank>{2});
  CHECK(blame(run).slots == std::vector<std::size_t>{1, 0});
}

TEST_CASE("whoever is gone outweighs a cycle elsewhere", "[wait_graph]") {
  EvidenceBuilder run(4);
  const GroupId a = run.group("a", {0, 1});
  const GroupId b = run.group("b", {0, 1});
  const GroupId c = run.group("c", {2, 3});
  run.waits({0}, on(a, barrier()));
  run.waits({1}, on(b, barrier()));
  run.waits({2}, on(c, barrier()));
  run.finishes({3});
  CHECK_FALSE(blame(run).cycle);
  CHECK(blame(run).culprits == std::vector<Rank>{3});
}

TEST_CASE("a rank blocked in a later call of the same group is no mystery", "[wait_graph]") {
  EvidenceBuilder run(3);
  run.issues({0}, barrier());  // asynchronous
  run.waits({0}, barrier());
  run.waits({1}, barrier());
  run.finishes({2});
  const auto slots = blocked_slots(run.evidence());
  REQUIRE(slots.size() == 2);
  CHECK(slots[0].waiting == std::vector<Rank>{1});
  CHECK(slots[0].missing == std::vector<Rank>{2});
  CHECK(slots[1].missing == std::vector<Rank>{1, 2});
  CHECK(slots[1].next == std::vector<std::size_t>{0});
  CHECK(blame(run).culprits == std::vector<Rank>{2});
}

}  // namespace rollcall::check::wait_graph_test
