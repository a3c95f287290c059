#include "sim/engine/group_creation.h"

#include <string>

#include "tests/catch.h"

namespace rollcall::sim::group_creation_test {
namespace {

// "0: ok, 2: Wait timeout".
std::string told(const std::vector<GroupCreation::Outcome>& outcomes) {
  std::string text;
  for (const GroupCreation::Outcome& outcome : outcomes) {
    text += (text.empty() ? "" : ", ") + std::to_string(outcome.rank) + ": " +
            (outcome.error.empty() ? "ok" : outcome.error);
  }
  return text;
}

constexpr GroupCreation::Rules of_1_13{.rendezvous = GlooRendezvous::address_per_pair, .waits_for_all = true};
constexpr GroupCreation::Rules of_2_6{.rendezvous = GlooRendezvous::one_by_one};
constexpr GroupCreation::Rules of_2_14{.rendezvous = GlooRendezvous::all_then_connect};
constexpr GroupCreation::Rules barrier_only{.waits_for_all = true};

}  // namespace

TEST_CASE("members and others are through when everybody has called", "[group_creation]") {
  GroupCreation creation(0, 3, of_1_13);
  creation.enter(2, {0, 1});
  creation.enter(0, {0, 1});
  CHECK(told(creation.advance()).empty());
  CHECK_FALSE(creation.is_complete());
  creation.enter(1, {0, 1});
  CHECK(told(creation.advance()) == "0: ok, 1: ok, 2: ok");
  CHECK(creation.is_complete());
}

TEST_CASE("a member without its peer's address waits for that, others at the barrier", "[group_creation]") {
  GroupCreation creation(0, 3, of_1_13);
  creation.enter(0, {0, 1});
  creation.enter(2, {0, 1});
  CHECK(told(creation.advance()).empty());
  CHECK(creation.timeout_text(0, 3 * second) == "Wait timeout");
  CHECK(creation.timeout_text(2, 3 * second) ==
        "Timed out initializing process group in store based barrier on rank: 2, for key: "
        "store_based_barrier_key:2 (world_size=3, worker_count=1, timeout=0:00:03)");
}

TEST_CASE("the barrier's key counts the groups, and its text the time as Python does", "[group_creation]") {
  GroupCreation creation(4, 2, of_1_13);
  creation.enter(0, {0});
  creation.advance();
  const std::string text = *creation.timeout_text(0, 90'061 * second + 500 * millisecond);
  CHECK(text.find("store_based_barrier_key:6 ") != std::string::npos);
  CHECK(text.find("timeout=1 day, 1:01:01.500000)") != std::string::npos);
}

TEST_CASE("lists of different length cut each other's addresses wrongly", "[group_creation]") {
  GroupCreation creation(0, 3, of_1_13);
  creation.enter(0, {0, 1});
  creation.enter(1, {0, 1, 2});
  creation.enter(2, {0, 1});
  const std::string text =
      "[enforce fail at ./gloo/transport/tcp/address.cc:45] sizeof(impl_) == bytes.size(). 136 vs ";
  CHECK(told(creation.advance()) == "0: " + text + "272, 1: " + text + "68");
  CHECK_FALSE(creation.is_complete());
}

TEST_CASE("two ranks that both think themselves first wait for a second one", "[group_creation]") {
  GroupCreation creation(0, 3, of_1_13);
  creation.enter(0, {0, 1});
  creation.enter(1, {1, 2});
  creation.enter(2, {0, 1});
  CHECK(told(creation.advance()).empty());
  CHECK(creation.timeout_text(1, second) == "Wait timeout");
}

TEST_CASE("without addresses to exchange only the barrier is left", "[group_creation]") {
  GroupCreation creation(0, 2, barrier_only);
  creation.enter(0, {0});
  creation.enter(1, {1});
  CHECK(told(creation.advance()) == "0: ok, 1: ok");
}

TEST_CASE("who has given up still counts for those that come later", "[group_creation]") {
  GroupCreation creation(0, 2, barrier_only);
  creation.enter(0, {0});
  creation.advance();
  creation.give_up(0);
  creation.enter(1, {0});
  CHECK(told(creation.advance()) == "1: ok");
  CHECK_FALSE(creation.is_complete());
}

TEST_CASE("since 2.x members wait for members, and the others for nobody", "[group_creation]") {
  for (const GroupCreation::Rules& rules : {of_2_6, of_2_14}) {
    GroupCreation creation(0, 3, rules);
    CHECK(creation.enter(0, {0, 1}));
    CHECK_FALSE(creation.enter(2, {0, 1}));
    CHECK(told(creation.advance()).empty());
    CHECK(creation.timeout_text(0, second) == "Wait timeout");
    CHECK(creation.enter(1, {0, 1}));
    CHECK(told(creation.advance()) == "0: ok, 1: ok");
    CHECK(creation.is_complete());
  }
}

TEST_CASE("in 2.6 a rank connects with its peers one by one, whatever their lists say", "[group_creation]") {
  GroupCreation creation(0, 3, of_2_6);
  creation.enter(0, {0, 1});
  creation.enter(1, {0, 1, 2});
  CHECK(told(creation.advance()) == "0: ok");
  CHECK(creation.timeout_text(1, second) == "Wait timeout");
}

TEST_CASE("in 2.14 a rank connects with nobody before all are there", "[group_creation]") {
  GroupCreation creation(0, 3, of_2_14);
  creation.enter(0, {0, 1});
  creation.enter(1, {0, 1, 2});
  CHECK(told(creation.advance()).empty());
  CHECK_FALSE(creation.timeout_text(0, second));  // its peer listens, and never connects
  CHECK(creation.timeout_text(1, second) == "Wait timeout");
}

TEST_CASE("nobody connects with a rank that has given up", "[group_creation]") {
  for (const GroupCreation::Rules& rules : {of_2_6, of_2_14}) {
    GroupCreation creation(0, 2, rules);
    creation.enter(1, {0, 1});
    creation.advance();
    creation.give_up(1);
    creation.enter(0, {0, 1});
    CHECK(told(creation.advance()).empty());
    CHECK_FALSE(creation.timeout_text(0, second));
  }
}

}  // namespace rollcall::sim::group_creation_test
