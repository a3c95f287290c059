#include "sim/match/naming.h"

#include "tests/catch.h"
#include "tests/unit/match/evidence_builder.h"

namespace rollcall::check::naming_test {
namespace {

using test::all_reduce;
using test::EvidenceBuilder;
using test::on;

}  // namespace

TEST_CASE("a call is named with everything a report shows", "[naming]") {
  EvidenceBuilder run(2);
  Op op = test::at_line(12, run.labeled("loss", run.labeled("epoch", all_reduce(4, Dtype::bfloat16))));
  op.device = {DeviceType::cuda, 3};
  const Call call = name_call(run.evidence(), op, 5);
  CHECK(call.op == "all_reduce");
  CHECK(call.group == "world");
  CHECK(call.seq == 5);
  CHECK(call.numel == 4);
  CHECK(call.dtype == "bfloat16");
  CHECK(call.reduce_op == "SUM");
  CHECK(call.root == -1);
  CHECK(call.device == "cuda:3");
  CHECK(call.label == "epoch/loss");
  CHECK(call.site == "train.py:12:1");
}

TEST_CASE("a barrier is named without size, dtype, reduction and device", "[naming]") {
  const EvidenceBuilder run(2);
  const Call call = name_call(run.evidence(), test::barrier(), 0);
  CHECK(call.numel == 0);
  CHECK(call.dtype.empty());
  CHECK(call.reduce_op.empty());
  CHECK(call.device.empty());
}

TEST_CASE("roots are named by their global rank", "[naming]") {
  EvidenceBuilder run(8);
  const GroupId odd = run.group("odd", {1, 3, 5, 7});
  CHECK(name_call(run.evidence(), on(odd, test::broadcast(1, 2)), 0).root == 5);
}

TEST_CASE("a live slot names each member's own call", "[naming]") {
  EvidenceBuilder run(4);
  const GroupId odd = run.group("odd", {1, 3});
  run.waits({1}, on(odd, test::at_line(1, all_reduce(4))));
  run.waits({3}, on(odd, test::at_line(2, all_reduce(8))));
  const Evidence evidence = run.evidence();
  const GroupMatcher& matcher = *evidence.groups[odd].matcher;
  CHECK(name_call(evidence, matcher.op_of(*matcher.find(0), 0), 0).numel == 4);
  CHECK(name_call(evidence, matcher.op_of(*matcher.find(0), 1), 0).site == "train.py:2:1");
}

TEST_CASE("variants of an incident carry global ranks", "[naming]") {
  EvidenceBuilder run(6);
  const GroupId odd = run.group("odd", {1, 3, 5});
  run.waits({1, 5}, on(odd, all_reduce(4)));
  run.waits({3}, on(odd, test::barrier()));
  const Evidence evidence = run.evidence();
  const auto variants = name_variants(evidence, *evidence.mismatch);
  REQUIRE(variants.size() == 2);
  CHECK(to_string(variants[0].ranks) == "1,5");
  CHECK(to_string(variants[1].ranks) == "3");
  CHECK(variants[1].call.op == "barrier");
  CHECK(variants[1].call.group == "odd");
}

}  // namespace rollcall::check::naming_test
