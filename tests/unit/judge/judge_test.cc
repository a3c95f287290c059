#include "sim/judge/judge.h"

#include <algorithm>
#include <numeric>

#include "tests/catch.h"
#include "tests/unit/judge/verdicts.h"
#include "tests/unit/match/evidence_builder.h"

namespace rollcall::check::judge_test {
namespace {
using test::all_reduce;
using test::as;
using test::barrier;
using test::culprits;
using test::EvidenceBuilder;
using test::finding;
using test::kind;
using test::on;

}  // namespace

TEST_CASE("ranks that all finished are fine", "[judge]") {
  EvidenceBuilder run(2);
  run.waits({0, 1}, barrier());
  run.finishes({0, 1});
  CHECK(std::holds_alternative<Completed>(run.judge()));
}

// ---- A rank is missing ----

TEST_CASE("a rank that ran out of inputs is missed by the others", "[judge]") {
  EvidenceBuilder run(3);
  run.took_inputs({0}, 5);
  run.took_inputs({1, 2}, 6);
  run.finishes({0});
  run.waits({1, 2}, all_reduce(4));
  const Verdict verdict = run.judge();
  as<Deadlock>(verdict);
  CHECK(kind(verdict) == FindingKind::missing_participant);
  CHECK(culprits(verdict) == "0");
  CHECK_FALSE(finding(verdict).tie);
  CHECK(to_string(finding(verdict).at->waiting) == "1-2");
  CHECK(to_string(finding(verdict).at->missing) == "0");
  CHECK_THAT(finding(verdict).cause, Contains("ran out of inputs after 5"));
  CHECK_THAT(finding(verdict).advice, Contains("Join"));
}

TEST_CASE("a call that a minority makes alone is the minority's doing", "[judge]") {
  EvidenceBuilder run(4);
  run.waits({2}, run.labeled("checkpoint", barrier()));
  run.finishes({0, 1, 3});
  const Verdict verdict = run.judge();
  CHECK(kind(verdict) == FindingKind::missing_participant);
  CHECK(culprits(verdict) == "2");
  CHECK(to_string(finding(verdict).at->missing) == "0-1,3");
  CHECK_THAT(finding(verdict).headline, Contains("only rank 2 calls barrier #0 on world"));
  CHECK_THAT(finding(verdict).cause, Contains("checkpoint"));
}

TEST_CASE("when as many wait as are missing, the missing are to blame", "[judge]") {
  EvidenceBuilder run(4);
  run.waits({0, 1}, barrier());
  run.finishes({2, 3});
  CHECK(culprits(run.judge()) == "2-3");
}

TEST_CASE("a thousand ranks wait for one", "[judge]") {
  EvidenceBuilder run(1000);
  run.waits(RankSet::range(0, 999), barrier());
  run.waits(RankSet::range(0, 998), all_reduce(4));
  run.finishes({999});
  const Verdict verdict = run.judge();
  CHECK(culprits(verdict) == "999");
  CHECK(finding(verdict).at->call.seq == 1);
  CHECK(finding(verdict).at->waiting.size() == 999);
  CHECK(finding(verdict).headline.size() < 200);  // as long for 1,000 ranks as for 4
}

TEST_CASE("blame reaches through groups to the rank that left", "[judge]") {
  EvidenceBuilder run(4);
  const GroupId front = run.group("front", {0, 1});
  const GroupId back = run.group("back", {1, 2, 3});
  run.waits({0}, on(front, barrier()));
  run.waits({1, 2}, on(back, barrier()));
  run.finishes({3});
  const Verdict verdict = run.judge();
  CHECK(culprits(verdict) == "3");
  CHECK(finding(verdict).at->call.group == "back");
  CHECK(finding(verdict).chain.size() == 2);
}

TEST_CASE("a rank that raised explains a hang, whoever else just finished", "[judge]") {
  EvidenceBuilder run(4);
  run.raises({2}, "ValueError", "bad sample");
  run.finishes({0});
  run.waits({1, 3}, barrier());
  const Verdict verdict = run.judge();
  as<Deadlock>(verdict);
  CHECK(kind(verdict) == FindingKind::rank_crashed);
  CHECK(culprits(verdict) == "2");
  CHECK_THAT(finding(verdict).cause, Contains("ValueError: bad sample"));
}

TEST_CASE("a crash in another group is shown before a rank that finished", "[judge]") {
  EvidenceBuilder run(5);
  const GroupId first = run.group("first", {0, 1});
  const GroupId second = run.group("second", {2, 3, 4});
  run.waits({0}, on(first, barrier()));
  run.finishes({1});
  run.waits({2, 3}, on(second, barrier()));
  run.crashes({4}, "segmentation fault");
  const Verdict verdict = run.judge();
  CHECK(kind(verdict) == FindingKind::rank_crashed);
  CHECK(culprits(verdict) == "4");
  CHECK(finding(verdict).at->call.group == "second");
}

TEST_CASE("one rank that waits for the rank that raised is no culprit", "[judge]") {
  EvidenceBuilder run(4);
  run.raises({0, 1, 2}, "OSError", "disk full");
  run.waits({3}, barrier());
  CHECK(kind(run.judge()) == FindingKind::rank_crashed);
  CHECK(culprits(run.judge()) == "0-2");
}

TEST_CASE("a call that was issued and never waited for hangs nobody", "[judge]") {
  EvidenceBuilder run(2);
  run.issues({0}, all_reduce(4));
  run.finishes({0, 1});
  CHECK(verdict_word(run.judge()) == "resource_leak");
  CHECK(kind(run.judge()) == FindingKind::work_never_completed);
}

// ---- Cycles ----

TEST_CASE("three groups entered in a cycle are a crossing", "[judge]") {
  EvidenceBuilder run(4);
  const GroupId ab = run.group("ab", {0, 1});
  const GroupId bc = run.group("bc", {1, 2});
  const GroupId ca = run.group("ca", {0, 2});
  run.waits({0}, on(ab, barrier()));
  run.waits({1}, on(bc, barrier()));
  run.waits({2}, on(ca, barrier()));
  run.waits({3}, barrier());  // waits for all ranks, and is not to blame
  const Verdict verdict = run.judge();
  as<Deadlock>(verdict);
  CHECK(kind(verdict) == FindingKind::order_crossing);
  CHECK(culprits(verdict) == "0-2");
  CHECK(finding(verdict).chain.size() == 3);
  CHECK_THAT(finding(verdict).advice, Contains("one order"));
}

TEST_CASE("a cycle that somebody left is a missing participant", "[judge]") {
  EvidenceBuilder run(3);
  const GroupId a = run.group("a", {0, 1});
  const GroupId b = run.group("b", {0, 1, 2});
  run.waits({0}, on(a, barrier()));
  run.waits({1}, on(b, barrier()));
  run.finishes({2});
  CHECK(kind(run.judge()) == FindingKind::missing_participant);
  CHECK(culprits(run.judge()) == "2");
}

// ---- Devices ----

namespace {

DeviceIncident device_incident(FindingKind kind, std::vector<Rank> ranks) {
  DeviceIncident incident;
  incident.kind = kind;
  incident.ranks = std::move(ranks);
  incident.op = all_reduce(4);
  incident.op.device = kind == FindingKind::cpu_tensor ? cpu_device : Device{DeviceType::cuda, 1};
  incident.expected = {DeviceType::cuda, 0};
  incident.other = 0;
  return incident;
}

Verdict with_device(FindingKind kind) {
  EvidenceBuilder run(4, "nccl");
  run.raises({1, 2}, "ValueError", "no");
  run.waits({0, 3}, all_reduce(4));
  run.gives_device(device_incident(kind, {1, 2}));
  return run.judge();
}

}  // namespace

TEST_CASE("a wrong device explains the hang of the others", "[judge]") {
  const Verdict cpu = with_device(FindingKind::cpu_tensor);
  as<DeviceMismatch>(cpu);
  CHECK(kind(cpu) == FindingKind::cpu_tensor);
  CHECK(culprits(cpu) == "1-2");
  CHECK(finding(cpu).at->call.device == "cpu");
  CHECK_THAT(finding(cpu).headline, Contains("nccl takes CUDA tensors only"));
  const Verdict duplicate = with_device(FindingKind::duplicate_gpu);
  CHECK(kind(duplicate) == FindingKind::duplicate_gpu);
  CHECK_THAT(finding(duplicate).headline, Contains("ranks 1-2 use cuda:1, which rank 0"));
  const Verdict stray = with_device(FindingKind::stray_device);
  CHECK(kind(stray) == FindingKind::stray_device);
  CHECK_THAT(finding(stray).headline, Contains("from cuda:0 to cuda:1"));
}

TEST_CASE("device or mismatch: whatever came first", "[judge]") {
  EvidenceBuilder run(3);
  run.waits({0, 1}, all_reduce(4));
  run.waits({2}, all_reduce(8));  // at time 0
  DeviceIncident incident = device_incident(FindingKind::stray_device, {1});
  incident.at = 5;
  run.gives_device(incident);
  CHECK(std::holds_alternative<Mismatch>(run.judge()));
  incident.at = 0;
  run.gives_device(incident);
  CHECK(std::holds_alternative<DeviceMismatch>(run.judge()));
}

// ---- Failures and limits ----

TEST_CASE("a rank that raised while nobody waits failed on its own", "[judge]") {
  EvidenceBuilder run(3);
  run.raises({1}, "ValueError", "bad sample");
  run.finishes({0, 2});
  const Verdict verdict = run.judge();
  CHECK(as<RankFailed>(verdict).exception == "ValueError: bad sample");
  CHECK(kind(verdict) == FindingKind::raised);
  CHECK(culprits(verdict) == "1");
}

TEST_CASE("throwing Join blames the ranks that ran out of inputs first", "[judge]") {
  EvidenceBuilder run(3);
  run.raises({0, 2}, "RuntimeError",
             "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
  run.raises({1}, "RuntimeError", "Rank 1 exhausted all inputs.");
  const Verdict verdict = run.judge();
  as<RankFailed>(verdict);
  CHECK(kind(verdict) == FindingKind::early_termination);
  CHECK(culprits(verdict) == "1");
}

TEST_CASE("an earlier mispairing does not hide that a rank raised", "[judge]") {
  EvidenceBuilder run(2);
  run.waits({0}, run.labeled("a", all_reduce(1)));
  run.waits({1}, run.labeled("b", all_reduce(1)));
  run.raises({0}, "ValueError", "loss is nan");
  run.finishes({1});
  as<RankFailed>(run.judge());
}

TEST_CASE("a limit is reported as one, not as the hang it interrupts", "[judge]") {
  EvidenceBuilder run(2);
  run.waits({0}, barrier());
  run.reaches_limit(FindingKind::ops, 1000);
  const Verdict verdict = run.judge();
  CHECK(kind(verdict) == FindingKind::ops);
  CHECK(as<LimitReached>(verdict).value == 1000);
  CHECK_THAT(finding(verdict).headline, Contains("1000"));
  CHECK(finding(verdict).culprits.empty());
}

TEST_CASE("a mismatch before the limit is what went wrong", "[judge]") {
  EvidenceBuilder run(2);
  run.waits({0}, barrier());
  run.waits({1}, all_reduce(1));
  run.reaches_limit(FindingKind::ops, 1000);
  as<Mismatch>(run.judge());
}

// ---- Order ----

namespace {

// Returns everything that a verdict says, as text.
std::string telling(const Verdict& verdict) {
  std::string text(verdict_word(verdict));
  if (const Finding* found = finding_of(verdict)) {
    text += "\n" + std::string(to_string(found->kind)) + "\n" + to_string(found->culprits);
    text += "\n" + found->headline + "\n" + found->cause + "\n" + found->advice + "\n" + found->on_backend;
    for (const std::string& step : found->chain) {
      text += "\n" + step;
    }
    if (found->at) {
      text += "\n" + call_phrase(found->at->call) + found->at->call.site + found->at->call.label;
    }
    if (found->first_divergence) {
      for (const Variant& variant : found->first_divergence->variants) {
        text += "\n" + to_string(variant.ranks) + variant.call.label + variant.call.site;
      }
    }
  }
  return text;
}

std::string telling(const std::vector<RankClass>& classes) {
  std::string text;
  for (const RankClass& one : classes) {
    text += to_string(one.ranks) + " " + std::string(to_string(one.state)) + " " + one.exception + " " +
            to_string(one.waits_for) + "\n";
  }
  return text;
}

// Calls `play(run, rank)` for every rank, in every order, and requires the same verdict.
template <typename Play>
void same_in_every_order(Rank world_size, Play&& play) {
  std::vector<Rank> order(static_cast<std::size_t>(world_size));
  std::iota(order.begin(), order.end(), 0);
  std::string expected;
  do {
    EvidenceBuilder run(world_size);
    run.group("low", {0, 1, 2});
    for (const Rank rank : order) {
      play(run, rank);
    }
    const std::string told = telling(run.judge()) + "\n" + telling(run.classes());
    if (expected.empty()) {
      expected = told;
    }
    REQUIRE(told == expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace

TEST_CASE("a missing rank is found in whatever order the others came", "[judge]") {
  same_in_every_order(5, [](EvidenceBuilder& run, Rank rank) {
    run.issues({rank}, all_reduce(2));
    if (rank == 3) {
      run.finishes({rank});
    } else {
      run.waits({rank}, test::at_line(static_cast<std::uint32_t>(20 + rank), all_reduce(4)));
    }
  });
}

TEST_CASE("a mismatch reads the same in whatever order the calls came", "[judge]") {
  same_in_every_order(5, [](EvidenceBuilder& run, Rank rank) {
    const Op op = rank == 1 ? barrier() : rank == 4 ? all_reduce(8) : all_reduce(4);
    run.waits({rank}, test::at_line(static_cast<std::uint32_t>(20 + rank), op));
  });
}

TEST_CASE("a crossing reads the same in whatever order the ranks blocked", "[judge]") {
  same_in_every_order(5, [](EvidenceBuilder& run, Rank rank) {
    run.waits({rank}, rank == 1 ? on(1, barrier()) : barrier());
  });
}

TEST_CASE("a divergence reads the same in whatever order the calls came", "[judge]") {
  same_in_every_order(4, [](EvidenceBuilder& run, Rank rank) {
    run.issues({rank}, run.labeled(rank == 2 ? "norm" : "loss", all_reduce(1)));
    if (rank != 2) {
      run.waits({rank}, run.labeled("norm", all_reduce(1)));
    } else {
      run.finishes({rank});
    }
  });
}

}  // namespace rollcall::check::judge_test
