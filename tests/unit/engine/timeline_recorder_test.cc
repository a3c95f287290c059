#include "sim/engine/timeline_recorder.h"
#include "tests/catch.h"

namespace rollcall::sim::timeline_recorder_test {
namespace {

struct Recorded {
  void arrive(Rank member, Time now, OpKind kind = OpKind::barrier) {
    Op op;
    op.kind = kind;
    op.rank = member;
    op.scope = scopes.enter(no_scope, "epoch");
    op.site = {"train.py", 7, 1};
    recorder.arrived(matcher.arrive(op), member, matcher.size(), now);
  }
  check::Slot& slot() { return *matcher.find(0); }

  ScopeTable scopes;
  GroupMembers members{3, "odd", {1, 3, 5}};
  check::GroupMatcher matcher{3};
  check::GroupEvidence group{&members, &matcher};
  TimelineRecorder recorder{scopes};
};

}  // namespace

TEST_CASE("a completed call is a span per member, from its own arrival", "[timeline_recorder]") {
  Recorded run;
  run.arrive(2, 10);
  run.arrive(0, 20);
  run.arrive(1, 30);
  run.slot().phase = check::Slot::Phase::done;
  run.recorder.finished(run.group, run.slot(), 50);
  const Timeline timeline = run.recorder.take();
  REQUIRE(timeline.spans().size() == 3);
  const Time starts[] = {20, 30, 10};
  for (std::size_t i = 0; i < 3; ++i) {
    const Span& span = timeline.spans()[i];
    CHECK(span.rank == run.members.ranks[i]);
    CHECK(span.start == starts[i]);
    CHECK(span.end == 50);
    CHECK(span.seq == 0);
    CHECK(timeline.name(span.name) == "barrier");
    CHECK(timeline.name(span.group) == "odd");
    CHECK(timeline.name(span.label) == "epoch");
    CHECK(timeline.name(span.site) == "train.py:7:1");
  }
}

TEST_CASE("a call that somebody never joined stays open for those in it", "[timeline_recorder]") {
  Recorded run;
  run.arrive(0, 10);
  run.arrive(2, 15);
  run.recorder.finished(run.group, run.slot(), Span::open);
  const Timeline timeline = run.recorder.take();
  REQUIRE(timeline.spans().size() == 2);
  CHECK(timeline.spans()[0].end == Span::open);
  CHECK(timeline.spans()[1].rank == 5);
}

TEST_CASE("of a disagreement, who completes and who hangs are recorded once each", "[timeline_recorder]") {
  Recorded run;
  run.arrive(0, 1);
  run.arrive(1, 2, OpKind::all_reduce);
  run.arrive(2, 3);
  check::Slot& slot = run.slot();
  slot.phase = check::Slot::Phase::irregular;
  slot.fates = {check::Fate::completes, check::Fate::hangs, check::Fate::crashes};
  run.recorder.finished(run.group, slot, 9);
  run.recorder.finished(run.group, slot, Span::open);
  const Timeline timeline = run.recorder.take();
  REQUIRE(timeline.spans().size() == 3);
  CHECK(timeline.spans()[0].rank == 1);
  CHECK(timeline.spans()[0].end == 9);
  CHECK(timeline.spans()[1].rank == 5);
  CHECK(timeline.spans()[1].end == 9);
  CHECK(timeline.spans()[2].rank == 3);
  CHECK(timeline.spans()[2].end == Span::open);
  CHECK(timeline.name(timeline.spans()[2].name) == "all_reduce");
}

TEST_CASE("computation is a span of its own kind", "[timeline_recorder]") {
  Recorded run;
  run.recorder.computed(4, 100, 250);
  const Timeline timeline = run.recorder.take();
  REQUIRE(timeline.spans().size() == 1);
  CHECK(timeline.spans()[0].kind == Span::Kind::compute);
  CHECK(timeline.spans()[0].rank == 4);
  CHECK(timeline.spans()[0].end - timeline.spans()[0].start == 150);
}

}  // namespace rollcall::sim::timeline_recorder_test
