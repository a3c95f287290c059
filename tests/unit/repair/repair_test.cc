// Finds the smallest change with which a job runs to its end.

#include <algorithm>
#include <string>
#include <vector>

#include "sim/c10d/collectives.h"
#include "sim/c10d/p2p.h"
#include "sim/engine/simulate.h"
#include "sim/report/blame.h"
#include "tests/catch.h"

namespace rollcall::check::repair_test {
namespace {

const Finding& found(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  REQUIRE(finding != nullptr);
  return *finding;
}

sim::Options four_ranks() { return {.world_size = 4, .backend = "gloo"}; }

}  // namespace

TEST_CASE("who leaves out a call is to blame, and the report says with what all ranks finish",
          "[repair][fiber]") {
  const Report report = sim::run(four_ranks(), [](Rank rank) {
    for (int step = 0; step < 4; ++step) {
      if (rank != 2 || step != 1) {
        all_reduce(Tensor::ones({8}));
      }
      all_reduce(Tensor::ones({1}));
    }
  });
  const Finding& finding = found(report);
  CHECK(finding.culprits == RankSet{2});
  REQUIRE(finding.repair);
  CHECK(finding.repair->alternatives == 0);
  REQUIRE(finding.repair->steps.size() == 1);
  CHECK(finding.repair->steps[0].ranks == RankSet{2});
  CHECK(finding.repair->steps[0].text.find("call all_reduce on world of 8 x float32") == 0);
}

TEST_CASE("between two ranks, whoever leaves its own habit is to blame", "[repair][fiber]") {
  for (const Rank wrong : {0, 1}) {
    const Report report = sim::run({.world_size = 2, .backend = "gloo"}, [&](Rank rank) {
      for (int step = 0; step < 5; ++step) {
        all_reduce(Tensor::ones({8}));
        if (rank == wrong && step == 2) {
          all_reduce(Tensor::ones({3}));
        }
        barrier();
      }
    });
    INFO(found(report).headline << "; " << found(report).suspicion);
    CHECK(to_string(found(report).culprits) == std::to_string(wrong));
    CHECK_FALSE(found(report).tie);
  }
}

TEST_CASE("a call on another group names the rank that made it, and the group that its peers use",
          "[repair][fiber]") {
  sim::Options options{.world_size = 6, .backend = "gloo"};
  options.groups = {{"evens", {0, 2, 4}}, {"odds", {1, 3, 5}}};
  const Report report = sim::run(options, [](Rank rank) {
    const ProcessGroup own = find_group(rank % 2 == 0 ? "evens" : "odds");
    for (int step = 0; step < 4; ++step) {
      const bool is_wrong = rank == 3 && step == 2;
      all_reduce(Tensor::ones({8}), {.group = is_wrong ? ProcessGroup() : own});
      all_reduce(Tensor::ones({1}));
    }
  });
  CHECK(found(report).culprits == RankSet{3});
}

TEST_CASE("who calls on two groups in an order of its own is to blame, in the first step and in all",
          "[repair][fiber]") {
  for (const int steps : {1, 3}) {
    sim::Options options = four_ranks();
    options.groups = {{"a", {0, 1, 2, 3}}, {"b", {0, 1, 2, 3}}};
    const Report report = sim::run(options, [&](Rank rank) {
      for (int step = 0; step < steps; ++step) {
        all_reduce(Tensor::ones({2}), {.group = find_group(rank == 3 ? "b" : "a")});
        all_reduce(Tensor::ones({2}), {.group = find_group(rank == 3 ? "a" : "b")});
      }
    });
    INFO(found(report).headline);
    CHECK(found(report).kind == FindingKind::order_crossing);
    CHECK(found(report).culprits == RankSet{3});
    CHECK(found(report).repair);
  }
}

// The leaves of a broadcast, and ranks that only contribute to a reduce, have ended: they are missing on the other
// group, but did nothing wrong.
TEST_CASE("one rank's rooted call on another group is that rank's mistake, whoever has ended meanwhile",
          "[repair][fiber]") {
  for (const int ranks : {3, 5}) {
    for (const bool broadcasts : {false, true}) {
      for (Rank wrong = 0; wrong < ranks; ++wrong) {
        sim::Options options{.world_size = ranks, .backend = "gloo"};
        std::vector<Rank> all;
        for (Rank rank = 0; rank < ranks; ++rank) {
          all.push_back(rank);
        }
        options.groups = {{"everybody", all}};
        const Report report = sim::run(options, [&](Rank rank) {
          const ProcessGroup group = rank == wrong ? ProcessGroup() : find_group("everybody");
          Tensor one = Tensor::ones({1});
          if (broadcasts) {
            broadcast(one, 0, {.group = group});
          } else {
            reduce(one, 0, {.group = group});
          }
        });
        INFO((broadcasts ? "broadcast" : "reduce")
             << " of " << ranks << ", " << wrong << " is wrong: " << found(report).headline);
        CHECK(found(report).culprits == RankSet{wrong});
        CHECK(found(report).kind == FindingKind::wrong_group);
      }
    }
  }
}

TEST_CASE("in a pipeline, who sends or receives more or fewer messages than all others do is to blame",
          "[repair][fiber]") {
  constexpr int batches = 4;
  const auto wrong_by = [](Rank wrong, bool sends, int by) {
    const Report report = sim::run({.world_size = 4, .backend = "nccl"}, [&](Rank rank) {
      const Device cuda{DeviceType::cuda, static_cast<std::int16_t>(rank)};
      const Tensor activations = Tensor::ones({16}, Dtype::float32, cuda);
      const int sent = batches + (rank == wrong && sends ? by : 0);
      const int received = batches + (rank == wrong && !sends ? by : 0);
      for (int batch = 0; batch < std::max(sent, received); ++batch) {
        if (rank > 0 && batch < received) {
          recv(activations, rank - 1);
        }
        if (rank < 3 && batch < sent) {
          send(activations, rank + 1);
        }
      }
      all_reduce(Tensor::ones({1}, Dtype::float32, cuda));
    });
    INFO("rank " << wrong << (sends ? " sends " : " receives ") << by << ": " << found(report).headline);
    CHECK(found(report).culprits == RankSet{wrong});
    CHECK_FALSE(found(report).tie);
    CHECK(found(report).repair);
  };
  for (const int by : {-1, 1}) {
    for (Rank rank = 0; rank < 3; ++rank) {
      wrong_by(rank, true, by);
      wrong_by(rank + 1, false, by);
    }
  }
}

TEST_CASE("between replicas, who reduces more often than all others do is to blame", "[repair][fiber]") {
  sim::Options options = four_ranks();
  options.groups = {{"stage 0", {0, 1}}, {"stage 1", {2, 3}}};
  for (Rank wrong = 0; wrong < 4; ++wrong) {
    const Report report = sim::run(options, [&](Rank rank) {
      const ProcessGroup own = find_group(rank < 2 ? "stage 0" : "stage 1");
      for (int step = 0; step < (rank == wrong ? 4 : 3); ++step) {
        all_reduce(Tensor::ones({1000}), {.group = own});
      }
    });
    INFO(found(report).headline);
    CHECK(found(report).culprits == RankSet{wrong});
    CHECK_FALSE(found(report).tie);
  }
}

TEST_CASE("between two ranks, the number of messages the other way does not show which of both is wrong",
          "[repair][fiber]") {
  const Report report = sim::run({.world_size = 2, .backend = "gloo"}, [&](Rank rank) {
    const Tensor data = Tensor::ones({8});
    for (int turn = 0; turn < 4; ++turn) {
      if (rank == 0) {
        send(data, 1);
        recv(data, 1);
      } else {
        recv(data, 0);
        send(data, 0);
      }
    }
    if (rank == 1) {
      send(data, 0);
    }
  });
  INFO(found(report).headline);
  CHECK(confidence_in_blame(report.verdict) != Confidence::high);
}

TEST_CASE("a program that must not run again is judged by its evidence alone", "[repair][fiber]") {
  sim::Options options = four_ranks();
  options.may_run_again = false;
  const Report report = sim::run(options, [](Rank rank) {
    if (rank != 2) {
      all_reduce(Tensor::ones({8}));
    }
  });
  CHECK(found(report).culprits == RankSet{2});
  CHECK_FALSE(found(report).repair);
}

TEST_CASE("nothing is said of a repair where every change leaves somebody waiting", "[repair][fiber]") {
  const Report report = sim::run({.world_size = 2, .backend = "gloo"}, [](Rank rank) {
    if (rank == 0) {
      throw std::runtime_error("disk full");
    }
    all_reduce(Tensor::ones({8}));
  });
  CHECK(found(report).kind == FindingKind::rank_crashed);
  CHECK_FALSE(found(report).repair);
}

}  // namespace rollcall::check::repair_test
