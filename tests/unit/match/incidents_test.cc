#include "sim/match/incidents.h"

#include <algorithm>
#include <array>

#include "tests/catch.h"

namespace rollcall::check::incidents_test {
namespace {

// Two groups over four ranks, and a log that watches them.
struct Watched {
  Watched() : evens{1, "evens", {0, 2}}, world{0, "world", {0, 1, 2, 3}} {}

  Slot& arrive(GroupId group, Rank member, std::int64_t numel, ScopeId scope = no_scope) {
    Op op;
    op.kind = OpKind::all_reduce;
    op.group = group;
    op.rank = member;
    op.numel = numel;
    op.scope = scope;
    return (group == 0 ? world_matcher : evens_matcher).arrive(op);
  }
  Evidence evidence() {
    Evidence evidence;
    log.add_to(evidence);
    return evidence;
  }

  GroupMembers evens;
  GroupMembers world;
  GroupMatcher world_matcher{4};
  GroupMatcher evens_matcher{2};
  std::vector<GroupEvidence> groups{{&world, &world_matcher}, {&evens, &evens_matcher}};
  ScopeTable scopes;
  IncidentLog log{groups, scopes};
};

DeviceIncident device_incident(Time at, std::int64_t seq, Rank rank) {
  DeviceIncident incident;
  incident.at = at;
  incident.seq = seq;
  incident.ranks = {rank};
  incident.op.rank = rank;
  return incident;
}

}  // namespace

TEST_CASE("a run without incidents has none", "[incidents]") {
  Watched run;
  for (Rank rank = 0; rank < 4; ++rank) {
    run.arrive(0, rank, 4);
  }
  run.log.inspect_full(0, 0, *run.world_matcher.find(0));
  CHECK_FALSE(run.evidence().mismatch.has_value());
  CHECK_FALSE(run.evidence().mispairing.has_value());
  CHECK_FALSE(run.evidence().device.has_value());
}

TEST_CASE("a call that disagreed and died of it is remembered", "[incidents]") {
  Watched run;
  Slot& slot = run.arrive(0, 0, 7);
  run.arrive(0, 2, 4);
  run.log.suspect(0, 0, 0);
  run.arrive(0, 3, 4);
  run.log.inspect_withdrawn(0, slot, 0);
  run.world_matcher.withdraw(slot, 0);
  run.arrive(0, 1, 4);
  const Evidence evidence = run.evidence();
  REQUIRE(evidence.mismatch.has_value());
  REQUIRE(evidence.mismatch->variants.size() == 2);
  CHECK(evidence.mismatch->variants[0].ranks == std::vector<Rank>{1, 2, 3});
  CHECK(evidence.mismatch->variants[1].ranks == std::vector<Rank>{0});
}

TEST_CASE("incidents carry global ranks", "[incidents]") {
  Watched run;
  run.arrive(1, 0, 4);
  run.arrive(1, 1, 8);
  run.log.suspect(3, 1, 0);
  run.log.inspect_full(3, 1, *run.evens_matcher.find(0));
  const auto mismatch = run.evidence().mismatch;
  REQUIRE(mismatch.has_value());
  CHECK(mismatch->at == 3);
  CHECK(mismatch->group == 1);
  REQUIRE(mismatch->variants.size() == 2);
  CHECK(mismatch->variants[1].ranks == std::vector<Rank>{2});
}

TEST_CASE("a slot that never filled up is looked at in the end", "[incidents]") {
  Watched run;
  run.arrive(0, 0, 4);
  run.arrive(0, 3, 8);
  run.log.suspect(1, 0, 0);
  run.arrive(0, 1, 4);  // after the suspicion, and still part of the picture
  const auto mismatch = run.evidence().mismatch;
  REQUIRE(mismatch.has_value());
  CHECK(mismatch->variants[0].ranks == std::vector<Rank>{0, 1});
}

TEST_CASE("the earliest mismatch counts, ties going to the lower group and slot", "[incidents]") {
  std::array<std::pair<GroupId, std::int64_t>, 3> order{{{0, 0}, {0, 1}, {1, 0}}};
  do {
    Watched run;
    for (int i = 0; i < 2; ++i) {
      run.arrive(0, 0, 1);
      run.arrive(0, 1, 2);
    }
    run.arrive(1, 0, 1);
    run.arrive(1, 1, 2);
    for (const auto& [group, seq] : order) {
      run.log.suspect(5, group, seq);
    }
    run.log.suspect(9, 0, 0);
    const auto mismatch = run.evidence().mismatch;
    REQUIRE(mismatch->group == 0);
    REQUIRE(mismatch->seq == 0);
    REQUIRE(mismatch->at == 5);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("of the calls of one group that disagree, the lowest number counts, however late its last rank is",
          "[incidents]") {
  Watched run;
  for (int i = 0; i < 2; ++i) {
    run.arrive(0, 0, 1);
    run.arrive(0, 1, 2);
  }
  run.log.suspect(5, 0, 1);
  run.log.suspect(9, 0, 0);
  CHECK(run.evidence().mismatch->seq == 0);

  run.arrive(1, 0, 1);
  run.arrive(1, 1, 2);
  run.log.suspect(7, 1, 0);
  CHECK(run.evidence().mismatch->group == 1);  // between groups, time counts
}

TEST_CASE("a settled mismatch is remembered after its slot is forgotten", "[incidents]") {
  Watched run;
  run.arrive(1, 0, 4);
  run.arrive(1, 1, 8);
  run.log.suspect(0, 1, 0);
  Slot& slot = *run.evens_matcher.find(0);
  run.log.inspect_full(0, 1, slot);
  slot.phase = Slot::Phase::done;
  run.evens_matcher.retire();
  REQUIRE(run.evens_matcher.find(0) == nullptr);
  CHECK(run.evidence().mismatch->variants.size() == 2);
}

TEST_CASE("the first mispaired slot is kept, not the last", "[incidents]") {
  Watched run;
  const ScopeId loss = run.scopes.enter(no_scope, "loss");
  const ScopeId norm = run.scopes.enter(no_scope, "norm");
  for (int i = 0; i < 2; ++i) {
    run.arrive(1, 0, 4, loss);
    run.arrive(1, 1, 4, norm);
  }
  run.log.inspect_full(1, 1, *run.evens_matcher.find(0));
  run.log.inspect_full(2, 1, *run.evens_matcher.find(1));
  CHECK(run.evidence().mispairing->seq == 0);
  CHECK(run.evidence().mispairing->at == 1);
  CHECK(run.evidence().mispairing->variants.size() == 2);
  CHECK_FALSE(run.evidence().mismatch.has_value());
}

TEST_CASE("one mistake on several ranks is one incident, in any order", "[incidents]") {
  std::array<Rank, 3> order{1, 2, 3};
  do {
    Watched run;
    for (const Rank rank : order) {
      run.log.device(device_incident(4, 0, rank));
    }
    run.log.device(device_incident(4, 1, 0));  // a later call
    run.log.device(device_incident(9, 0, 0));  // a later time
    const auto device = run.evidence().device;
    REQUIRE(device->ranks == std::vector<Rank>{1, 2, 3});
    REQUIRE(device->op.rank == 1);  // the first culprit's call
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a collective with the number of a message does not take the message's place", "[incidents]") {
  Watched run;
  Message send;
  send.op.kind = OpKind::send;
  send.op.numel = 3;
  Message receive;
  receive.op.kind = OpKind::recv;
  receive.op.rank = 1;
  receive.op.numel = 5;
  run.log.message(0, send, receive);
  for (Rank rank = 0; rank < 4; ++rank) {
    run.arrive(0, rank, rank == 3 ? 9 : 4);
  }
  run.log.suspect(1, 0, 0);
  run.log.inspect_full(1, 0, *run.world_matcher.find(0));
  const Incident mismatch = *run.evidence().mismatch;
  REQUIRE(mismatch.variants.size() == 2);
  CHECK(mismatch.variants[0].op.kind == OpKind::send);
  CHECK(mismatch.variants[1].op.kind == OpKind::recv);
}

}  // namespace rollcall::check::incidents_test
