// The matchers as users see them: what passes, and what Catch2 prints when they do not.

#include "viz/catch2.h"

#include <string>

#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::catch2_test {
namespace {

Report uneven() {
  return sim::run({.world_size = 4, .backend = "gloo"}, [](Rank rank) {
    print("rank " + std::to_string(rank) + " starts");
    for (int i = 0; i < (rank == 0 ? 5 : 6); ++i) {
      Scope scope("gradients");
      all_reduce(Tensor::ones({1000}));
    }
  });
}

Report run(const sim::Program& program, std::string backend = "gloo") {
  return sim::run({.world_size = 2, .backend = std::move(backend)}, program);
}

// Returns Catch2's message for a failed assertion.
std::string failure(const ReportMatcher& matcher, const Report& report) {
  REQUIRE_FALSE(matcher.match(report));
  return matcher.toString();
}

}  // namespace

TEST_CASE("a matcher asks for the verdict and for as much of the rest as it is told", "[fiber]") {
  const Report report = uneven();
  CHECK_THAT(report, IsDeadlock());
  CHECK_THAT(report, IsDeadlock().missing({0}));
  CHECK_THAT(report, IsDeadlock().missing({0}).waiting(RankSet::range(1, 3)).culprits({0}));
  CHECK_THAT(report, IsDeadlock().at("all_reduce", 5).on("world").in("gradients"));
  CHECK_THAT(report, IsDeadlock().kind(FindingKind::missing_participant).saying("5 times"));
  CHECK_THAT(report, IsDeadlock() && Printed("rank 2 starts") && Printed(2, "rank 2 starts"));
  CHECK_THAT(report, !IsOk() && !Printed(1, "rank 2 starts"));
  CHECK_THAT(report, !IsDeadlock().missing({1}) && !IsDeadlock().missing({0, 1}));
  CHECK_THAT(report, !IsDeadlock().at("all_reduce", 4) && !IsDeadlock().at("barrier"));
  CHECK_THAT(report, !IsDeadlock().on("dp") && !IsDeadlock().in("loss") && !IsDeadlock().saying("Gloo 7"));
  CHECK_THAT(report, !IsDeadlock().kind(FindingKind::cross_group_deadlock) && !IsDeadlock().culprits({3}));
}

TEST_CASE("every verdict has a matcher that takes it and no other", "[fiber]") {
  const Report ok = run([](Rank) { barrier(); });
  const Report mismatch = run(
      [](Rank rank) {
        all_reduce(
            Tensor::ones({1 + rank}, Dtype::float32, {DeviceType::cuda, static_cast<std::int16_t>(rank)}));
      },
      "nccl");
  const Report raised = run([](Rank rank) {
    if (rank == 1) {
      throw std::runtime_error("bad sample");
    }
  });
  CHECK_THAT(ok, IsOk() && !IsDeadlock() && !IsMismatch());
  CHECK_THAT(mismatch, IsMismatch().on("world") && !IsOk() && !IsDeadlock());
  CHECK_THAT(raised, IsRankFailed().culprits({1}) && !IsOk() && !IsMismatch());
  CHECK_THAT(ok,
             !IsDeviceMismatch() && !IsWrongResult() && !IsRace() && !IsResourceLeak() && !IsLimitReached());
}

TEST_CASE("a failed matcher says what was expected and what is different", "[fiber]") {
  const std::string text = failure(IsDeadlock().missing({2}).at("barrier", 5), uneven());
  CHECK_THAT(text, StartsWith("is \"deadlock\" at barrier #5, missing rank 2\n"));
  CHECK_THAT(text,
             Contains("but missing: rank 0") && Contains("but call: all_reduce") && !Contains("number"));
  CHECK_THAT(failure(Printed(1, "hello"), uneven()), StartsWith("rank 1 printed \"hello\"\n"));
  CHECK_THAT(failure(IsOk(), uneven()), Contains("but verdict: deadlock"));
  CHECK_THAT(failure(Printed(1, "hello"), uneven()), Contains("but rank 1 printed no line \"hello\""));
  CHECK_THAT(failure(IsDeadlock().missing({1}), run([](Rank) {})),
             Contains("but verdict: ok") && Contains("but missing: no rank"));
}

TEST_CASE("Catch2 shows a report as its text", "[fiber]") {
  CHECK_THAT(Catch::StringMaker<Report>::convert(uneven()),
             StartsWith("error[deadlock]: rank 0 never called all_reduce #5 on world"));
}

}  // namespace rollcall::catch2_test
