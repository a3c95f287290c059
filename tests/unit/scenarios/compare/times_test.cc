// How long calls took on GPUs: which times count, and the claims about them.

#include "scenarios/compare/times.h"

#include "sim/cost/group_cost.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"

namespace rollcall::compare::times_test {
namespace {

using real::Record;
using Log = std::vector<Record>;

void add(Log& log, std::int64_t call, std::int64_t numel, Time from, Time to) {
  Record record;
  record.kind = Record::Kind::issue;
  record.call = call;
  record.op.op.kind = OpKind::all_reduce;
  record.op.op.numel = numel;
  log.push_back(record);
  record.kind = Record::Kind::complete;
  record.ran_from = from;
  record.ran_to = to;
  log.push_back(record);
}

CallTimes megabyte(std::vector<double> times) {
  CallTimes result;
  result.bytes = 1 << 20;
  result.ranks = 8;
  result.times = std::move(times);
  return result;
}

Facts real_facts(std::vector<double> times) {
  Facts facts;
  facts.backend = "nccl";
  facts.times = {megabyte(std::move(times))};
  return facts;
}

const cost::Cluster h100 = cost::find_cluster("h100-8").cluster.value();

}  // namespace

TEST_CASE(
    "a call takes what the member that waited least for others took, and the first call of a group does not "
    "count",
    "[compare]") {
  Log first;
  Log second;
  add(first, 0, 256, 0, 900'000);  // connects
  add(second, 0, 256, 0, 900'000);
  add(first, 1, 256, 1'000'000, 1'050'000);  // waits for the other rank
  add(second, 1, 256, 1'030'000, 1'050'000);
  add(first, 2, 256, 2'000'000, 2'030'000);
  add(second, 2, 256, 2'000'000, 2'030'000);
  add(first, 3, 256, 3'000'000, 3'030'000);  // the other rank does not come
  CallTimes expected;
  expected.bytes = 1024;
  expected.ranks = 2;
  expected.times = {20, 30};
  CHECK(times_of({first, second}, 8) == std::vector{expected});
  CHECK(times_of({first, second}, 1).at(0).nodes == 2);
}

TEST_CASE("a time is claimed where three repeats lie inside the interval or outside of it", "[compare]") {
  const cost::GroupCost group(cost::communicator_of(h100, 8, 1));
  const double expected = group.predict({.bytes = 1 << 20})->fitted;
  const auto claim = [&](const Facts& real) { return time_claims(real, h100).at(0); };
  const Claim inside = claim(real_facts({expected, expected * 1.02, expected * 0.98}));
  CHECK(inside.judgement == Claim::Judgement::agrees);
  CHECK(inside.about == "time of all_reduce of 1 MiB on 8 ranks");
  CHECK_THAT(inside.simulated, Contains("us, 9 of 10 from"));
  CHECK_THAT(inside.real, Contains("the median of 3 from"));
  const Claim outside = claim(real_facts({expected * 9, expected * 10, expected * 11}));
  CHECK(outside.judgement == Claim::Judgement::differs);
  CHECK_THAT(outside.because, Contains("10.00 times what is expected"));
  CHECK(claim(real_facts({expected, expected})).judgement == Claim::Judgement::cannot_be_judged);
}

TEST_CASE("times that mean nothing are not judged, and the claim says why", "[compare]") {
  Facts gloo = real_facts({1, 2, 3});
  gloo.backend = "gloo";
  const Claim claim = time_claims(gloo, h100).at(0);
  CHECK(claim.judgement == Claim::Judgement::cannot_be_judged);
  CHECK_THAT(claim.because, Contains("over loopback"));
  CHECK_THAT(time_claims(real_facts({1, 2, 3}), {}).at(0).because, Contains("has no cluster"));
  CHECK(why_no_times("gloo", 2).because == claim.because);
}

}  // namespace rollcall::compare::times_test
