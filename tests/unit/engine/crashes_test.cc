// Ranks that die at a time that the scenario names, whatever they are doing.

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::sim::crashes_test {
namespace {

Options dying(Rank rank, Time at, const std::string& backend) {
  Options options{.world_size = 4, .backend = backend, .timeline = true};
  options.crashes = {{RankSet{rank}, at}};
  return options;
}

Tensor one() { return Tensor::ones({1}, Dtype::float32, this_rank().device); }

void compute(Duration duration) { this_rank().backend->compute(duration); }

const Finding& finding_of_deadlock(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  REQUIRE(verdict_word(report.verdict) == "deadlock");
  return *finding;
}

}  // namespace

TEST_CASE("a rank that dies while it computes never makes its next call", "[faults][fiber]") {
  for (const char* backend : {"gloo", "nccl"}) {
    INFO(backend);
    const Report report = run(dying(2, 12 * millisecond, backend), [](Rank) {
      for (int step = 0; step < 5; ++step) {
        compute(5 * millisecond);
        all_reduce(one());
      }
      synchronize();
    });
    const Finding& finding = finding_of_deadlock(report);
    CHECK(finding.kind == FindingKind::rank_crashed);
    CHECK(finding.culprits == RankSet{2});
    CHECK(finding.at->call.seq == 2);
    CHECK(finding.at->waiting == RankSet{0, 1, 3});
    CHECK(report.of(2).state == RankClass::State::crashed);
    CHECK(report.of(2).exception == "SIGKILL");
  }
}

TEST_CASE("a rank that dies while it waits takes its call with it", "[faults][fiber]") {
  for (const char* backend : {"gloo", "nccl"}) {
    INFO(backend);
    const Report report = run(dying(1, 10 * millisecond, backend), [](Rank rank) {
      if (rank == 0) {
        compute(20 * millisecond);
      }
      all_reduce(one());
      synchronize();
    });
    const Finding& finding = finding_of_deadlock(report);
    CHECK(finding.kind == FindingKind::rank_crashed);
    CHECK(finding.culprits == RankSet{1});
    CHECK(finding.at->missing == RankSet{1});
    CHECK(finding.at->waiting == RankSet{0, 2, 3});
  }
}

TEST_CASE("a receive that a dead rank had posted meets nobody", "[faults][fiber]") {
  for (const char* backend : {"gloo", "nccl"}) {
    INFO(backend);
    const Report report = run(dying(1, 10 * millisecond, backend), [](Rank rank) {
      Tensor t = one();
      if (rank == 0) {
        compute(20 * millisecond);
        send(t, 1);
      } else if (rank == 1) {
        recv(t, 0);
      }
      synchronize();
    });
    const Finding& finding = finding_of_deadlock(report);
    CHECK(finding.culprits == RankSet{1});
    CHECK(finding.kind == FindingKind::rank_crashed);
  }
}

TEST_CASE("a call that its process does not survive ends it, whatever the rank does meanwhile",
          "[faults][fiber]") {
  for (const Duration busy : {Duration(0), 10 * millisecond}) {
    const Report report = run({.world_size = 4, .backend = "gloo"}, [busy](Rank rank) {
      if (rank < 3) {
        all_reduce(Tensor::ones({64}));
        return;
      }
      all_reduce(Tensor::ones({1}), {.async_op = true});  // is sent 64 / 8 elements
      compute(busy);
      all_reduce(Tensor::ones({8}));
    });
    CHECK(report.of(3).state == RankClass::State::crashed);
    CHECK(finding_of(report.verdict)->kind == FindingKind::numel_mismatch);
  }
}

TEST_CASE("a group is not made without a rank that died waiting for it", "[faults][fiber]") {
  const Report report = run(dying(1, 10 * millisecond, "gloo"), [](Rank rank) {
    if (rank == 0) {
      compute(20 * millisecond);
    }
    new_group(std::vector<Rank>{0, 1, 2, 3});
  });
  CHECK(finding_of_deadlock(report).kind == FindingKind::rank_crashed);
  CHECK(finding_of_deadlock(report).culprits == RankSet{1});
}

TEST_CASE("a group that a rank was through with when it died is there for the others", "[faults][fiber]") {
  for (const TorchRelease torch : {TorchRelease::v2_6, TorchRelease::v2_14}) {
    for (const char* backend : {"gloo", "nccl"}) {
      INFO(backend << ", release " << static_cast<int>(torch));
      Options options = dying(1, 10 * millisecond, backend);
      options.torch = torch;
      const Report report = run(options, [](Rank rank) {
        compute(rank == 3 ? 20 * millisecond : 0);
        const ProcessGroup pair = new_group(RankList{0, 1});
        compute(rank == 1 ? 30 * millisecond : 0);
        if (rank == 0) {
          all_reduce(one(), {.group = pair});
          synchronize();
        }
      });
      CHECK(finding_of_deadlock(report).kind == FindingKind::rank_crashed);
      CHECK(report.of(3).state == RankClass::State::finished);
    }
  }
}

TEST_CASE("a rank can die before it has done anything, and all of them can", "[faults][fiber]") {
  Options options = dying(3, 0, "gloo");
  const Report report = run(options, [](Rank) { all_reduce(one()); });
  CHECK(finding_of_deadlock(report).at->missing == RankSet{3});
  options.crashes = {{RankSet::range(0, 3), 5}};
  const Report nobody = run(options, [](Rank) { compute(10); });
  CHECK(verdict_word(nobody.verdict) == "rank_failed");
  CHECK(nobody.simulated_time == 5);
}

TEST_CASE("a crash after the end, or after everything stands still, changes nothing", "[faults][fiber]") {
  const Report done = run(dying(0, second, "gloo"), [](Rank) { all_reduce(one()); });
  CHECK(verdict_word(done.verdict) == "ok");
  CHECK(done.simulated_time < millisecond);
  const Report stuck = run(dying(0, second, "gloo"), [](Rank rank) {
    if (rank != 3) {
      all_reduce(one());
    }
  });
  CHECK(finding_of_deadlock(stuck).culprits == RankSet{3});
  CHECK(stuck.of(0).state == RankClass::State::waiting);
}

TEST_CASE("what everybody had entered completes, and a dead rank's peers see it gone on gloo",
          "[faults][fiber]") {
  Options options = dying(1, 11 * microsecond, "gloo");  // two ranks: 5 us a step
  options.world_size = 2;
  options.crashes.front().at = 3 * microsecond;
  int completed = 0;
  const Report report = run(options, [&](Rank rank) {
    all_reduce(one());
    completed += rank == 0 ? 1 : 0;
    all_reduce(one());
  });
  CHECK(completed == 1);
  CHECK(finding_of_deadlock(report).at->call.seq == 1);
}

}  // namespace rollcall::sim::crashes_test
