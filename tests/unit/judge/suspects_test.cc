#include "sim/judge/suspects.h"

#include <map>
#include <utility>

#include "tests/catch.h"

namespace rollcall::check::suspects_test {
namespace {

// One call of a program, by default on the world.
struct ProgramStep {
  OpKind kind;
  std::int64_t numel = 0;
  std::string label;
  std::string group = "world";
  bool is_root = false;
};

RankProgram program(Rank rank, const std::vector<ProgramStep>& steps) {
  RankProgram result{rank, {}};
  std::map<std::pair<std::string, bool>, std::int64_t> next;
  for (const ProgramStep& step : steps) {
    const bool is_message = is_point_to_point(step.kind);
    result.calls.push_back({step.kind, step.group, next[{step.group, is_message}]++, step.numel,
                            step.kind == OpKind::barrier ? "" : "float32", step.label, step.is_root});
  }
  return result;
}

// Two ranks met in slot `seq` with different calls. Returns the first suspect; -1 if there is none.
Rank first_suspect(const std::vector<ProgramStep>& zero, const std::vector<ProgramStep>& one,
                   std::int64_t seq) {
  Mismatch mismatch;
  mismatch.finding.culprits = {0, 1};
  mismatch.finding.tie = true;
  Call call;
  call.op = "all_reduce";
  call.group = "world";
  call.seq = seq;
  mismatch.finding.at = Place{call, {0, 1}, {}};
  mismatch.variants = {{{0}, call}, {{1}, call}};
  Verdict verdict = mismatch;
  CHECK(ranks_to_compare(verdict) == std::vector<Rank>{0, 1});
  order_suspects(verdict, {program(0, zero), program(1, one)});
  const std::vector<Rank>& suspects = finding_of(verdict)->suspects;
  return suspects.empty() ? -1 : suspects.front();
}

// Two ranks wait for each other in the first calls of their programs.
Rank first_in_cycle(const std::vector<ProgramStep>& zero, const std::vector<ProgramStep>& one) {
  Deadlock deadlock;
  deadlock.finding.culprits = {0, 1};
  const auto place = [](Rank rank, const ProgramStep& step) {
    Call call;
    call.op = to_string(step.kind);
    call.group = step.group;
    return Place{call, {rank}, {1 - rank}};
  };
  deadlock.cycle = {place(0, zero.front()), place(1, one.front())};
  Verdict verdict = deadlock;
  order_suspects(verdict, {program(0, zero), program(1, one)});
  const std::vector<Rank>& suspects = finding_of(verdict)->suspects;
  return suspects.empty() ? -1 : suspects.front();
}

const ProgramStep grads{OpKind::all_reduce, 1000, "grads"};
const ProgramStep vote{OpKind::all_reduce, 1, "has_data"};
const ProgramStep loss{OpKind::all_reduce, 1, "val_loss"};
const ProgramStep shard{OpKind::broadcast, 500, "shard"};
const ProgramStep save{OpKind::barrier, 0, "save"};

}  // namespace

TEST_CASE("whoever left out what the other makes first is suspected", "[check]") {
  CHECK(first_suspect({grads, grads, loss}, {grads, loss}, 1) == 1);
  CHECK(first_suspect({grads, loss}, {grads, grads, loss}, 1) == 0);
}

TEST_CASE("whoever is back at the vote of the next step has left something out", "[check]") {
  CHECK(first_suspect({vote, grads, vote, grads}, {vote, grads, shard, vote, grads}, 2) == 0);
}

TEST_CASE("a small call of a new kind is a path of one's own", "[check]") {
  CHECK(first_suspect({grads, save, grads}, {grads, grads}, 1) == 0);
  CHECK(first_suspect({grads, grads}, {grads, save, grads}, 1) == 1);
}

TEST_CASE("a large call of a new kind is one that the other left out", "[check]") {
  CHECK(first_suspect({grads, shard, grads}, {grads, grads}, 1) == 1);
  CHECK(first_suspect({grads, shard}, {grads, grads}, 1) == 1);
}

TEST_CASE("whoever keeps the others waiting in a barrier is suspected", "[check]") {
  CHECK(first_suspect({grads, shard, shard, save}, {grads, save}, 1) == 0);
}

TEST_CASE("whoever breaks the pattern of its own steps is suspected", "[check]") {
  CHECK(first_suspect({grads, loss, grads, loss, grads, loss}, {grads, loss, grads, grads, loss}, 3) == 1);
  CHECK(first_suspect({grads, grads, grads, save}, {grads, grads, save}, 2) == 1);
}

TEST_CASE("the longer pattern counts: two steps and then a vote, not one", "[check]") {
  const std::vector<ProgramStep> usual{grads, grads, loss, grads, grads, loss};
  CHECK(first_suspect(usual, {grads, grads, loss, grads, loss}, 4) == 1);
  CHECK(first_suspect(usual, {grads, grads, loss, grads, grads, grads, loss}, 5) == 1);
}

TEST_CASE("what the root hands out alone is its own doing", "[check]") {
  CHECK(first_suspect({{OpKind::broadcast, 32, "run id", "world", true}, grads}, {grads}, 0) == 0);
  CHECK(first_suspect({{OpKind::broadcast, 32, "run id"}, grads}, {grads}, 0) == 1);
}

TEST_CASE("a flag where the others are in the middle of a step is on a path of its own", "[check]") {
  const ProgramStep bucket{OpKind::all_reduce, 300, "bucket1"};
  const ProgramStep flag{OpKind::all_reduce, 1, "oom"};
  CHECK(first_suspect({grads, bucket}, {grads, flag}, 1) == 1);
}

TEST_CASE("programs that say nothing name nobody", "[check]") {
  CHECK(first_suspect({grads}, {loss}, 0) == -1);
  CHECK(first_suspect({grads, shard}, {shard, grads}, 0) == -1);
  CHECK(first_in_cycle({{OpKind::barrier, 0, "", "a"}, grads}, {grads, {OpKind::barrier, 0, "", "a"}}) == -1);
}

TEST_CASE("in a cycle, a call that the other never makes is one too many", "[check]") {
  CHECK(first_in_cycle({grads}, {{OpKind::all_gather, 1, "recompile", "cc"}, grads}) == 1);
}

TEST_CASE("in a cycle, a message without another end comes before a call that everyone makes", "[check]") {
  CHECK(first_in_cycle({{OpKind::recv, 4, ""}, save}, {save}) == 0);
}

TEST_CASE("in a cycle, what is sent has to be received", "[check]") {
  CHECK(first_in_cycle({{OpKind::send, 4, ""}, save}, {save}) == 1);
}

TEST_CASE("in a cycle, whoever is in the later step by its label is ahead", "[check]") {
  const ProgramStep report{OpKind::barrier, 0, "report_s1", "report"};
  const ProgramStep next{OpKind::all_reduce, 1000, "grads_s2"};
  CHECK(first_in_cycle({report, next}, {next, report}) == 1);
}

TEST_CASE("in a cycle, ranks that stand by show which call comes first", "[check]") {
  const ProgramStep inner{OpKind::all_reduce, 4, "cp", "pair"};
  Deadlock deadlock;
  deadlock.finding.culprits = {2, 3};
  Call in_pair;
  in_pair.op = "all_reduce";
  in_pair.group = "pair";
  Call in_world;
  in_world.op = "barrier";
  in_world.group = "world";
  deadlock.cycle = {Place{in_pair, {2}, {3}}, Place{in_world, {0, 1, 3}, {2}}};
  Verdict verdict = deadlock;
  CHECK(ranks_to_compare(verdict) == std::vector<Rank>{0, 2, 3});
  const ProgramStep others{OpKind::all_reduce, 4, "cp", "other pair"};
  order_suspects(verdict, {program(0, {others, save}), program(2, {inner, save}), program(3, {save, inner})});
  CHECK(finding_of(verdict)->suspects == std::vector<Rank>{3, 2});
}

TEST_CASE("a key that no program sets is wrong itself, and not the order of the calls", "[check]") {
  Deadlock deadlock;
  deadlock.finding.kind = FindingKind::store_cycle;
  deadlock.finding.culprits = {0};
  Call get;
  get.op = "store_get";
  get.key = "ready-0";
  Call barrier;
  barrier.op = "barrier";
  barrier.group = "world";
  deadlock.cycle = {Place{barrier, {0}, {1}}, Place{get, {1}, {0}}};
  Verdict typo = deadlock;
  CHECK(ranks_to_compare(typo) == std::vector<Rank>{0});
  RankProgram setter = program(0, {save});
  setter.sets = {"ready/0"};
  order_suspects(typo, {setter});
  CHECK(finding_of(typo)->kind == FindingKind::store_never_served);
  CHECK(finding_of(typo)->culprits == RankSet{1});
  setter.sets = {"ready-0"};
  Verdict late = deadlock;
  order_suspects(late, {setter});
  CHECK(finding_of(late)->kind == FindingKind::store_cycle);
  CHECK(finding_of(late)->culprits == RankSet{0});
}

TEST_CASE("what the root sends is what there is", "[check]") {
  Call sent;
  sent.op = "broadcast";
  sent.group = "world";
  sent.root = 0;
  sent.numel = 199;
  Call expected = sent;
  expected.numel = 150;
  Mismatch mismatch;
  mismatch.finding.culprits = {0, 1};
  mismatch.finding.tie = true;
  mismatch.finding.at = Place{sent, {0, 1}, {}};
  mismatch.variants = {{{0}, sent}, {{1}, expected}};
  Verdict verdict = mismatch;
  order_suspects(verdict, {});
  CHECK(finding_of(verdict)->suspects == std::vector<Rank>{1, 0});
}

TEST_CASE("a verdict that a majority decides needs no suspects", "[check]") {
  Mismatch mismatch;
  mismatch.finding.culprits = {0};
  mismatch.variants = {{{1, 2}, {}}, {{0}, {}}};
  CHECK(ranks_to_compare(mismatch).empty());
  CHECK(ranks_to_compare(Completed{}).empty());
}

}  // namespace rollcall::check::suspects_test
