#include "sim/diagnose/list_replay.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace rollcall::check::list_replay_test {
namespace {

ProgramCall collective(const std::string& pairing, std::int64_t seq = 0) {
  ProgramCall call{.kind = OpKind::all_reduce, .group = "world", .seq = seq, .numel = 4};
  call.label = "train";
  call.pairing = pairing;
  return call;
}

ProgramCall message(OpKind kind, Rank peer, std::int64_t numel = 4, std::int64_t batch = -1) {
  ProgramCall call{.kind = kind, .group = "world", .numel = numel};
  call.peer = peer;
  call.batch = batch;
  return call;
}

std::vector<RankProgram> lists_of(const std::vector<std::vector<ProgramCall>>& calls) {
  std::vector<Rank> all;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    all.push_back(static_cast<Rank>(rank));
  }
  std::vector<RankProgram> lists;
  for (const Rank rank : all) {
    RankProgram& list = lists.emplace_back();
    list.rank = rank;
    list.calls = calls[static_cast<std::size_t>(rank)];
    list.groups = {{.name = "world", .ranks = all}};
    list.is_whole = false;
  }
  return lists;
}

}  // namespace

TEST_CASE("lists in which every call meets its like stand still nowhere", "[dump][repair]") {
  const auto lists =
      lists_of({{collective("a"), message(OpKind::send, 1)}, {collective("a"), message(OpKind::recv, 0)}});
  const ListReplay replay(lists, {});
  CHECK(replay.is_explained());
  CHECK(replay.hang().places.empty());
  CHECK(replay.made() == std::vector<std::size_t>{2, 2});
}

TEST_CASE("who waits for a rank that has stopped waits in vain, and is served once that one goes on",
          "[dump][repair]") {
  const auto lists = lists_of({{collective("a"), collective("a", 1)}, {collective("a")}});
  const ListReplay replay(lists, {});
  CHECK_FALSE(replay.is_explained());
  REQUIRE(replay.hang().places.size() == 1);
  CHECK(replay.hang().places.front().at == CallsAt{{0, 1}});
  CHECK(replay.hang().places.front().missing == RankSet{1});
  CHECK(replay.is_explained_with({{.rank = 1, .at = 1, .inserted = {collective("a", 1)}}}));
  CHECK(replay.is_explained_with({{.rank = 0, .at = 1, .dropped = 1}}));
}

TEST_CASE("who may be held up by what is not listed may come later", "[dump][repair]") {
  const auto lists = lists_of({{collective("a"), collective("a", 1)}, {collective("a")}});
  const ListReplay replay(lists, {.lists = {}, .ends = {1}});
  CHECK(replay.is_explained());
  CHECK(replay.hang().places.size() == 1);
}

TEST_CASE("calls that meet and differ stand still until one of them is changed", "[dump][repair]") {
  const auto lists = lists_of({{collective("a")}, {collective("a")}, {collective("b")}});
  const ListReplay replay(lists, {});
  REQUIRE(replay.hang().variants.size() == 2);
  CHECK(replay.hang().variants.back() == CallsAt{{2, 0}});
  CHECK(replay.is_explained_with({{.rank = 2, .at = 0, .dropped = 1, .inserted = {collective("a")}}}));
}

TEST_CASE("nobody waits for a rank of which nothing is known", "[dump][repair]") {
  auto lists = lists_of({{collective("a"), message(OpKind::recv, 2)}, {collective("a")}, {}});
  const ListReplay replay(lists, {.lists = {2}, .ends = {}});
  CHECK(replay.is_explained());
  CHECK(replay.made() == std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("the messages of a batch are under way together, and those of two calls one after the other",
          "[dump][repair]") {
  const auto both = [](Rank peer, std::int64_t batch) {
    return std::vector<ProgramCall>{message(OpKind::send, peer, 4, batch),
                                    message(OpKind::recv, peer, 4, batch)};
  };
  CHECK(ListReplay(lists_of({both(1, 0), both(0, 0)}), {}).is_explained());
  const auto in_turn = lists_of({both(1, -1), both(0, -1)});
  const ListReplay crossed(in_turn, {});
  CHECK_FALSE(crossed.is_explained());
  CHECK(crossed.hang().places.size() == 2);
}

TEST_CASE("a change that leaves calls of different lines together explains nothing", "[dump][repair]") {
  ProgramCall other = collective("a", 0);
  other.label = "validate";
  ProgramCall last = collective("a", 2);
  // Rank 1 left out its first call, so everything after that meets the wrong call.
  const auto lists = lists_of({{collective("a"), other, last}, {other, collective("a", 1)}});
  const ListReplay replay(lists, {});
  CHECK(replay.has_odd());
  CHECK_FALSE(replay.is_explained_with({{.rank = 0, .at = 2, .dropped = 1}}));
  CHECK(replay.is_explained_with({{.rank = 1, .at = 0, .inserted = {collective("a")}}}));
}

}  // namespace rollcall::check::list_replay_test
