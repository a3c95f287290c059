// The algorithms without arithmetic, between ranks that agree and ranks that do not. Rings that reduce are
// in gloo_ring_test.cc.

#include "sim/gloo/gloo_algorithms.h"

#include <algorithm>
#include <functional>
#include <string>

#include "tests/catch.h"

namespace rollcall::sim::gloo_algorithms_test {
namespace {

using check::Fate;

std::vector<std::byte> bytes(const std::string& text) {
  std::vector<std::byte> result(text.size());
  std::transform(text.begin(), text.end(), result.begin(), [](char c) { return static_cast<std::byte>(c); });
  return result;
}

std::string text(const gloo::Member& member) {
  std::string result;
  for (const std::byte byte : member.memory) {
    result.push_back(static_cast<char>(byte));
  }
  return result;
}

// Makes one member per memory, each with the steps for its seat.
std::vector<gloo::Member> members_of(GlooFunction function, const std::vector<std::string>& memories,
                                     const std::function<gloo::Steps(gloo::Seat)>& steps) {
  std::vector<gloo::Member> members;
  for (std::size_t rank = 0; rank < memories.size(); ++rank) {
    members.push_back(
        {.function = function, .memory = bytes(memories[rank]), .steps = steps({rank, memories.size()})});
  }
  return members;
}

std::vector<Fate> fates(std::vector<gloo::Member>& members) {
  std::vector<Fate> result;
  for (const gloo::Outcome& outcome : gloo::exchange(members, traits_of(TorchRelease::v1_13))) {
    result.push_back(outcome.fate);
  }
  return result;
}

bool all_complete(std::vector<gloo::Member>& members) {
  return std::ranges::all_of(fates(members), [](Fate fate) { return fate == Fate::completes; });
}

}  // namespace

TEST_CASE("a broadcast reaches everyone from every root", "[gloo_algorithms]") {
  for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
    for (std::size_t root = 0; root < ranks; ++root) {
      std::vector<std::string> memories(ranks, "....");
      memories[root] = "root";
      auto members = members_of(GlooFunction::broadcast, memories,
                                [root](gloo::Seat seat) { return gloo::broadcast_steps(seat, root, 4); });
      REQUIRE(all_complete(members));
      for (const gloo::Member& member : members) {
        REQUIRE(text(member) == "root");
      }
    }
  }
}

TEST_CASE("a broadcast is a tree: whoever is served by a rank that is served completes",
          "[gloo_algorithms]") {
  auto members = members_of(GlooFunction::broadcast, {"root", "....", "....", "...."},
                            [](gloo::Seat seat) { return gloo::broadcast_steps(seat, 0, 4); });
  members[3].function = GlooFunction::barrier;  // rank 3 does something else; rank 1 would serve it
  members[3].steps = gloo::barrier_steps({3, 4});
  CHECK(fates(members) == std::vector<Fate>{Fate::completes, Fate::hangs, Fate::completes, Fate::hangs});
  CHECK(text(members[1]) == "root");
}

TEST_CASE("an all_gather brings every block everywhere, odd sizes included", "[gloo_algorithms]") {
  for (std::size_t ranks = 1; ranks <= 6; ++ranks) {
    for (const std::size_t block : {1u, 2u, 3u}) {
      std::string expected;
      std::vector<std::string> memories(ranks, std::string(ranks * block, '.'));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::string own(block, static_cast<char>('a' + rank));
        expected += own;
        memories[rank].replace(rank * block, block, own);
      }
      auto members = members_of(GlooFunction::all_gather, memories,
                                [block](gloo::Seat seat) { return gloo::all_gather_steps(seat, block); });
      REQUIRE(all_complete(members));
      for (const gloo::Member& member : members) {
        REQUIRE(text(member) == expected);
      }
    }
  }
}

TEST_CASE("gather and scatter go straight to and from the root", "[gloo_algorithms]") {
  auto gathered = members_of(GlooFunction::gather, {"aa", "..bb..", "cc"},
                             [](gloo::Seat seat) { return gloo::gather_steps(seat, 1, 2); });
  REQUIRE(all_complete(gathered));
  CHECK(text(gathered[1]) == "aabbcc");
  auto scattered = members_of(GlooFunction::scatter, {"..", "aabbcc", ".."},
                              [](gloo::Seat seat) { return gloo::scatter_steps(seat, 1, 2); });
  REQUIRE(all_complete(scattered));
  CHECK(text(scattered[0]) == "aa");
  CHECK(text(scattered[2]) == "cc");
}

TEST_CASE("a rank that sends the root of a gather too much kills it and notices nothing",
          "[gloo_algorithms]") {
  // desync_size_gather: "8 vs 4".
  std::vector<gloo::Member> members(2);
  members[0] = {.function = GlooFunction::gather,
                .memory = bytes("aaaa...."),
                .steps = gloo::gather_steps({0, 2}, 0, 4)};
  members[1] = {.function = GlooFunction::gather,
                .memory = bytes("bbbbbbbb"),
                .steps = gloo::gather_steps({1, 2}, 0, 8)};
  const auto outcomes = gloo::exchange(members, traits_of(TorchRelease::v1_13));
  CHECK(outcomes[0].fate == Fate::crashes);
  CHECK_THAT(outcomes[0].failure, EndsWith("8 vs 4"));
  CHECK(outcomes[1].fate == Fate::completes);
}

TEST_CASE("an all_to_all exchanges parts of any size", "[gloo_algorithms]") {
  // Rank r sends r + 1 bytes to every rank.
  const auto parts = [](const std::vector<std::size_t>& lengths) {
    gloo::Parts result;
    for (const std::size_t length : lengths) {
      result.add(length);
    }
    return result;
  };
  const gloo::Parts output = parts({1, 2, 3});
  auto members = members_of(
      GlooFunction::all_to_all, {"a.....abc", ".BB...AABBCC", "...333111222333"}, [&](gloo::Seat seat) {
        return gloo::all_to_all_steps(seat, output, parts(std::vector(3, seat.rank + 1)));
      });
  REQUIRE(all_complete(members));
  CHECK(text(members[0]).substr(0, 6) == "aAA111");
  CHECK(text(members[1]).substr(0, 6) == "bBB222");
  CHECK(text(members[2]).substr(0, 6) == "cCC333");
}

TEST_CASE("a barrier lets nobody through before everyone has come", "[gloo_algorithms]") {
  for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
    auto members = members_of(GlooFunction::barrier, std::vector<std::string>(ranks),
                              [](gloo::Seat seat) { return gloo::barrier_steps(seat); });
    for (std::size_t missing = 0; missing < ranks && ranks > 1; ++missing) {
      auto incomplete = members;
      incomplete[missing].function = GlooFunction::broadcast;
      const auto result = fates(incomplete);
      REQUIRE(std::ranges::all_of(result, [](Fate fate) { return fate == Fate::hangs; }));
    }
    REQUIRE(all_complete(members));
  }
}

TEST_CASE("a message shorter than its place fills the front", "[gloo_algorithms]") {
  std::vector<gloo::Member> members(2);
  members[0] = {.function = GlooFunction::broadcast,
                .memory = bytes("ab"),
                .steps = gloo::broadcast_steps({0, 2}, 0, 2)};
  members[1] = {.function = GlooFunction::broadcast,
                .memory = bytes("...."),
                .steps = gloo::broadcast_steps({1, 2}, 0, 4)};
  CHECK(all_complete(members));
  CHECK(text(members[1]) == "ab..");
}

}  // namespace rollcall::sim::gloo_algorithms_test
