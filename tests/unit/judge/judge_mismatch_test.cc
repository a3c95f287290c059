// The judge on calls that met and should not have: they disagree, or they belong to different places.

#include <algorithm>

#include "sim/judge/judge.h"
#include "tests/catch.h"
#include "tests/unit/judge/verdicts.h"
#include "tests/unit/match/evidence_builder.h"

namespace rollcall::check::judge_mismatch_test {
namespace {
using test::all_reduce;
using test::as;
using test::barrier;
using test::broadcast;
using test::culprits;
using test::EvidenceBuilder;
using test::finding;
using test::kind;
using test::on;

}  // namespace

// ---- Disagreement ----

TEST_CASE("the majority is right about which call is due", "[judge]") {
  EvidenceBuilder run(4);
  run.waits({0, 1, 3}, all_reduce(4));
  run.waits({2}, barrier());
  const Verdict verdict = run.judge();
  const auto& mismatch = as<Mismatch>(verdict);
  CHECK(kind(verdict) == FindingKind::op_mismatch);
  CHECK(culprits(verdict) == "2");
  CHECK_FALSE(finding(verdict).tie);
  REQUIRE(mismatch.variants.size() == 2);
  CHECK(to_string(mismatch.variants[0].ranks) == "0-1,3");
  CHECK(to_string(finding(verdict).at->waiting) == "0-3");
}

TEST_CASE("without a majority everybody deviates, and the report says so", "[judge]") {
  EvidenceBuilder run(2);
  run.waits({0}, all_reduce(4));
  run.waits({1}, all_reduce(8));
  CHECK(culprits(run.judge()) == "0-1");
  CHECK(finding(run.judge()).tie);
}

TEST_CASE("a tie of the two largest makes the third deviate too", "[judge]") {
  EvidenceBuilder run(5);
  run.waits({0, 1}, all_reduce(4));
  run.waits({2, 3}, all_reduce(8));
  run.waits({4}, all_reduce(16));
  CHECK(culprits(run.judge()) == "0-4");
  CHECK(finding(run.judge()).tie);
}

TEST_CASE("what differs first decides the kind of a mismatch", "[judge]") {
  const auto kind_of = [](const Op& odd) {
    EvidenceBuilder run(3);
    run.waits({0, 1}, all_reduce(4));
    run.waits({2}, odd);
    return kind(run.judge());
  };
  CHECK(kind_of(broadcast(4, 0)) == FindingKind::op_mismatch);
  CHECK(kind_of(all_reduce(5, Dtype::int64)) == FindingKind::numel_mismatch);
  CHECK(kind_of(all_reduce(4, Dtype::int64, ReduceOp::max)) == FindingKind::dtype_mismatch);
  CHECK(kind_of(all_reduce(4, Dtype::float32, ReduceOp::max)) == FindingKind::reduce_op_mismatch);
  EvidenceBuilder roots(3);
  roots.waits({0, 1}, broadcast(4, 0));
  roots.waits({2}, broadcast(4, 2));
  CHECK(kind(roots.judge()) == FindingKind::root_mismatch);
}

TEST_CASE("different amounts in an all_to_all are no mismatch", "[judge]") {
  const auto list = [](std::int64_t first, std::int64_t second) {
    return TensorList{Tensor::zeros({first}), Tensor::zeros({second})};
  };
  const TensorList from_0 = list(1, 2);
  const TensorList from_1 = list(4, 8);
  const TensorList to_0 = list(1, 4);
  const TensorList to_1 = list(2, 8);
  Op op;
  op.kind = OpKind::all_to_all;
  op.uneven = true;
  EvidenceBuilder run(2);
  op.numel = 3;
  op.tensors.inputs = &from_0;
  op.tensors.outputs = &to_0;
  run.waits({0}, op);
  op.numel = 12;
  op.tensors.inputs = &from_1;
  op.tensors.outputs = &to_1;
  run.waits({1}, op);
  run.finishes({0, 1});
  CHECK(std::holds_alternative<Completed>(run.judge()));
}

TEST_CASE("a mismatch in a slot that never fills up is seen all the same", "[judge]") {
  EvidenceBuilder run(3);
  run.waits({0}, all_reduce(4));
  run.waits({1}, barrier());
  run.finishes({2});
  const Verdict verdict = run.judge();
  as<Mismatch>(verdict);
  CHECK(to_string(finding(verdict).at->waiting) == "0-1");
}

TEST_CASE("a mismatch outweighs the hang it leads to", "[judge]") {
  EvidenceBuilder run(3);
  run.waits({0, 1}, all_reduce(4));
  run.waits({2}, all_reduce(1));
  run.crashes({2}, "aborted");
  CHECK(std::holds_alternative<Mismatch>(run.judge()));
}

TEST_CASE("roots of a mismatch are told as global ranks", "[judge]") {
  EvidenceBuilder run(6);
  const GroupId upper = run.group("upper", {3, 4, 5});
  run.waits({3, 4}, on(upper, broadcast(4, 0)));
  run.waits({5}, on(upper, broadcast(4, 2)));
  const Verdict verdict = run.judge();
  CHECK(culprits(verdict) == "5");
  CHECK(as<Mismatch>(verdict).variants[0].call.root == 3);
  CHECK(as<Mismatch>(verdict).variants[1].call.root == 5);
}

// ---- Calls that met without belonging together ----

TEST_CASE("calls from different places that agree in everything are a wrong result", "[judge]") {
  EvidenceBuilder run(3);
  run.waits({0, 2}, run.labeled("loss", all_reduce(1)));
  run.waits({1}, run.labeled("norm", all_reduce(1)));
  run.finishes({0, 1, 2});
  const Verdict verdict = run.judge();
  as<WrongResult>(verdict);
  CHECK(kind(verdict) == FindingKind::mispaired);
  CHECK(culprits(verdict) == "1");
  CHECK_FALSE(finding(verdict).first_divergence.has_value());  // it is the reported place itself
}

TEST_CASE("an earlier mispairing explains a later deadlock", "[judge]") {
  EvidenceBuilder run(3);
  run.waits({0, 2}, run.labeled("loss", all_reduce(1)));
  run.waits({1}, run.labeled("norm", all_reduce(1)));
  run.waits({0, 2}, run.labeled("norm", all_reduce(1)));
  run.finishes({1});
  const Verdict verdict = run.judge();
  as<Deadlock>(verdict);
  REQUIRE(finding(verdict).first_divergence.has_value());
  CHECK(finding(verdict).first_divergence->seq == 0);
  CHECK(finding(verdict).first_divergence->variants.size() == 2);
  CHECK(finding(verdict).at->call.seq == 1);
  CHECK(culprits(verdict) == "1");
  CHECK_THAT(finding(verdict).cause, Contains("the later calls pair from there on"));
}

TEST_CASE("the divergence's majority overrules who happens to wait in the end", "[judge]") {
  EvidenceBuilder run(3);
  run.waits({0, 2}, run.labeled("loss", all_reduce(1)));
  run.waits({1}, run.labeled("extra", all_reduce(1)));  // rank 1 alone makes one call too many,
  run.waits({1}, run.labeled("loss", all_reduce(1)));   // and waits for the others at the end
  run.finishes({0, 2});
  CHECK(culprits(run.judge()) == "1");
  CHECK(finding(run.judge()).first_divergence.has_value());
}

TEST_CASE("a divergence in one group explains a mismatch in another", "[judge]") {
  EvidenceBuilder run(3);
  const GroupId pair = run.group("pair", {0, 1});
  run.waits({0}, on(pair, run.labeled("loss", all_reduce(1))));
  run.waits({1}, on(pair, run.labeled("norm", all_reduce(1))));
  run.waits({0, 2}, all_reduce(4));
  run.waits({1}, barrier());
  const Verdict verdict = run.judge();
  as<Mismatch>(verdict);
  REQUIRE(finding(verdict).first_divergence.has_value());
  CHECK(finding(verdict).first_divergence->group == "pair");
  CHECK(culprits(verdict) == "1");  // the divergence is a tie, so the vote of the mismatch stands
}

// ---- Join's hooks ----

namespace {

// One joined rank and one active rank, both past their first iteration: `hook` and `iteration` are the next calls that
// they issue.
Verdict shadowed(const std::vector<Op>& hook, const std::vector<Op>& iteration, EvidenceBuilder& run) {
  for (std::size_t i = 0; i < std::max(hook.size(), iteration.size()); ++i) {
    if (i < hook.size()) {
      run.waits({0}, hook[i]);
    }
    if (i < iteration.size()) {
      run.waits({1}, iteration[i]);
    }
  }
  const Evidence evidence = run.evidence();
  RankSet done;
  for (Rank rank = 0; rank < 2; ++rank) {
    if (evidence.ranks[static_cast<std::size_t>(rank)].state == RankStatus::State::running) {
      done.insert(rank);
    }
  }
  run.finishes(done);
  return run.judge();
}

}  // namespace

TEST_CASE("a main_hook that is too short blames the joined rank", "[judge]") {
  EvidenceBuilder run(2);
  const Op count = run.hook("join.presence", all_reduce(1));
  const Op notify = run.paired("join.notify", "join.presence", all_reduce(1));
  const Op forward = run.strict("counter", all_reduce(1));
  const Verdict verdict = shadowed({count, count}, {notify, forward}, run);
  as<WrongResult>(verdict);
  CHECK(kind(verdict) == FindingKind::join_hook_mismatch);
  CHECK(culprits(verdict) == "0");
  CHECK_FALSE(finding(verdict).tie);
  CHECK_THAT(finding(verdict).cause, Contains("fewer collectives"));
}

TEST_CASE("where no rank ever notified, the hook is not called too short", "[judge]") {
  EvidenceBuilder run(2);
  const Op count = run.hook("join.presence", all_reduce(1));
  const Verdict verdict = shadowed({count}, {run.strict("counter", all_reduce(1))}, run);
  CHECK(kind(verdict) == FindingKind::join_hook_mismatch);
  CHECK(culprits(verdict) == "0");
  CHECK_THAT(finding(verdict).cause, Contains("no rank ever called Join.notify_join_context"));
}

TEST_CASE("a main_hook that is too long blames the joined rank", "[judge]") {
  EvidenceBuilder run(2);
  const Op count = run.hook("join.presence", all_reduce(1));
  const Op main = run.hook("counter", all_reduce(1));
  const Op notify = run.strict("join.presence", all_reduce(1));
  const Op forward = run.strict("counter", all_reduce(1));
  const Verdict verdict = shadowed({count, main, main}, {notify, forward, notify}, run);
  CHECK(kind(verdict) == FindingKind::join_hook_mismatch);
  CHECK(culprits(verdict) == "0");
  CHECK_THAT(finding(verdict).cause, Contains("more collectives"));
}

TEST_CASE("a hook of another size is the hook's fault, not a tie", "[judge]") {
  EvidenceBuilder run(2);
  const Verdict verdict =
      shadowed({run.hook("counter", all_reduce(1))}, {run.strict("counter", all_reduce(4))}, run);
  as<Mismatch>(verdict);
  CHECK(kind(verdict) == FindingKind::join_hook_mismatch);
  CHECK(culprits(verdict) == "0");
  CHECK_FALSE(finding(verdict).tie);
  CHECK_THAT(finding(verdict).advice, Contains("same operation, size, dtype and root"));
}

TEST_CASE("a collective outside every joinable is the active rank's fault", "[judge]") {
  EvidenceBuilder run(2);
  const Op count = run.hook("join.presence", all_reduce(1));
  const Verdict verdict = shadowed({count}, {run.labeled("log", all_reduce(1))}, run);
  CHECK(kind(verdict) == FindingKind::join_hook_mismatch);
  CHECK(culprits(verdict) == "1");
  CHECK_THAT(finding(verdict).cause, Contains("inside the Join loop, and no main_hook shadows it"));
  CHECK_THAT(finding(verdict).cause, Contains("log"));
}

TEST_CASE("an early hook divergence renames the deadlock that follows", "[judge]") {
  EvidenceBuilder run(2);
  const Op count = run.hook("join.presence", all_reduce(1));
  const Op forward = run.strict("counter", all_reduce(1));
  const Verdict verdict = shadowed({count, count}, {forward}, run);
  as<Deadlock>(verdict);
  CHECK(kind(verdict) == FindingKind::join_hook_mismatch);
  CHECK(culprits(verdict) == "0");
  CHECK(finding(verdict).first_divergence->seq == 0);
  CHECK(finding(verdict).at->call.seq == 1);
}

TEST_CASE("hooks that disagree among themselves are an ordinary mismatch", "[judge]") {
  EvidenceBuilder run(2);
  run.waits({0}, run.hook("counter", all_reduce(1)));
  run.waits({1}, run.hook("counter", all_reduce(2)));
  CHECK(kind(run.judge()) == FindingKind::numel_mismatch);
  CHECK(finding(run.judge()).tie);
}

}  // namespace rollcall::check::judge_mismatch_test
