// How the supervisor reads a ring that its rank is still writing.

#include "traces/watch/live_ring.h"

#include "tests/catch.h"
#include "tests/folder.h"
#include "tests/unit/traces/ring_builder.h"
#include "traces/values/value.h"

namespace rollcall::watch::live_ring_test {
namespace {

using test::RingBuilder;

}  // namespace

TEST_CASE("a look at a ring says what moved, and whether its rank waits", "[watch]") {
  const test::Folder folder;
  folder.write(
      "rank_1.ring",
      RingBuilder(1, 2).world("0,1").call(1, "all_reduce").issue(1, 1, 100, 110).issue(1, 2, 120, 0).bytes());
  const auto ring = LiveRing::open(folder.path("rank_1.ring"));
  REQUIRE(ring);
  CHECK(ring->rank() == 1);
  CHECK(ring->world_size() == 2);
  CHECK(ring->pid() == 4711);
  const RingLook look = ring->look();
  CHECK(look.issued == 2);
  CHECK(look.waits);
  CHECK(look.waits_in.empty());
  CHECK_FALSE(look.has_ended);
}

TEST_CASE("a rank that waits for the others to start says so", "[watch]") {
  const test::Folder folder;
  folder.write("a.ring", RingBuilder(0, 2).call(1, "init_process_group").issue(1, 0, 100, 0, 0, 2).bytes());
  CHECK(LiveRing::open(folder.path("a.ring"))->look().waits_in == "init_process_group");
}

TEST_CASE("a question and the word of a standstill reach the file", "[watch]") {
  const test::Folder folder;
  folder.write("a.ring", RingBuilder(0, 2).world("0,1").call(1, "all_reduce").issue(1, 1, 100, 0).bytes());
  auto ring = LiveRing::open(folder.path("a.ring"));
  REQUIRE(ring);
  ring->ask(3);
  CHECK(ring->answered() == 0);
  ring->note_standstill(100);
  std::ifstream file(folder.path("a.ring"), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const traces::RankRecording recording = traces::decode_ring(bytes);
  REQUIRE(recording.dump.records.size() == 1);
  CHECK(recording.dump.records.front().retired);
}

TEST_CASE("a file that is not a ring yet is passed over, and one of another version is refused", "[watch]") {
  const test::Folder folder;
  folder.write("short.ring", "rollcall");
  CHECK_FALSE(LiveRing::open(folder.path("short.ring")));
  CHECK_FALSE(LiveRing::open(folder.path("none.ring")));
  folder.write("new.ring", RingBuilder(0, 2).put32(8, 9).bytes());
  CHECK_THROWS_AS(LiveRing::open(folder.path("new.ring")), traces::BadFile);
}

}  // namespace rollcall::watch::live_ring_test
