#include "sim/report/verdict.h"

#include "sim/report/blame.h"
#include "sim/report/report.h"
#include "tests/catch.h"

namespace rollcall::verdict_test {

TEST_CASE("every verdict has its word of the report format") {
  CHECK(verdict_word(Completed{}) == "ok");
  CHECK(verdict_word(Deadlock{}) == "deadlock");
  CHECK(verdict_word(Mismatch{}) == "mismatch");
  CHECK(verdict_word(DeviceMismatch{}) == "device_mismatch");
  CHECK(verdict_word(WrongResult{}) == "wrong_result");
  CHECK(verdict_word(RankFailed{}) == "rank_failed");
  CHECK(verdict_word(LimitReached{}) == "limit_reached");
}

TEST_CASE("every unhappy verdict has a finding, and a run that completed has none") {
  CHECK(finding_of(Completed{}) == nullptr);
  Finding finding;
  finding.kind = FindingKind::ops;
  const Verdict verdict = LimitReached{finding, 10};
  REQUIRE(finding_of(verdict) != nullptr);
  CHECK(finding_of(verdict)->kind == FindingKind::ops);
}

TEST_CASE("a blame that follows from calls is not sure where no change was looked for") {
  Finding missing;
  missing.kind = FindingKind::missing_participant;
  missing.culprits = {1};
  CHECK(confidence_in_blame(Deadlock{missing}) == Confidence::medium);
  missing.repair = Repair{.steps = {{.ranks = {1}, .text = "call barrier #0 on world"}}};
  missing.at = Place{{}, RankSet::range(2, 4), {1}};
  CHECK(confidence_in_blame(Deadlock{missing}) == Confidence::high);

  Finding crashed;
  crashed.kind = FindingKind::rank_crashed;  // that was seen
  crashed.culprits = {1};
  CHECK(confidence_in_blame(Deadlock{crashed}) == Confidence::high);
}

TEST_CASE("a call is named by operation, number and group") {
  Call call;
  call.op = "all_reduce";
  call.group = "dp";
  call.seq = 5;
  CHECK(call_phrase(call) == "all_reduce #5 on dp");
}

TEST_CASE("a label's lines are left out next to one of them") {
  CHECK(label_beside_site("fsdp.unshard 0 (model.py:12)", "src/model.py:12") == "fsdp.unshard 0");
  CHECK(label_beside_site("train.py:9", "train.py:9").empty());
  CHECK(label_beside_site("train.py:9/12", "train.py:12").empty());
  CHECK(label_beside_site("train (train.py:9/eval.py:12)", "eval.py:12") == "train");
  CHECK(label_beside_site("train.py:9/12", "train.py:2") == "train.py:9/12");
  CHECK(label_beside_site("train (train.py:9)", "eval.py:9") == "train (train.py:9)");
  CHECK(label_beside_site("data", "job.json:3:1") == "data");
  CHECK(label_beside_site("data", "") == "data");
}

TEST_CASE("a report finds the class a rank is in") {
  Report report;
  report.ranks.push_back({{0, 2}, RankClass::State::finished, {}, {}, 5, "", {}});
  report.ranks.push_back({{1}, RankClass::State::raised, {}, {}, 3, "ValueError: bad sample", {}});
  CHECK(report.of(2).inputs == 5);
  CHECK(to_string(report.of(1).state) == "raised");
}

}  // namespace rollcall::verdict_test
