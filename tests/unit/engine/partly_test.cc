// Collectives on gloo that some members never call: which ranks still complete them, as in the golden runs
// desync_h_bcast_skip_w4 and desync_h_gather_skip_leaf_w3.

#include <functional>
#include <vector>

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::partly_test {
namespace {

Report run_on_gloo(Rank ranks, const sim::Program& program, bool timeline = false) {
  return sim::run({.world_size = ranks, .backend = "gloo", .timeline = timeline}, program);
}

RankSet waiting(const Report& report) {
  RankSet ranks;
  for (const RankClass& group : report.ranks) {
    if (group.state == RankClass::State::waiting) {
      ranks.insert(group.ranks);
    }
  }
  return ranks;
}

}  // namespace

TEST_CASE("gloo's broadcast reaches those whose way through the tree is whole", "[fiber][partly]") {
  double got = 0;
  const Report report = run_on_gloo(4, [&](Rank rank) {
    if (rank != 2) {
      const Tensor tensor = Tensor::full({2}, rank + 1.0);
      broadcast(tensor, 0);
      got += rank == 3 ? tensor.at(0) : 0;
    }
  });
  CHECK(waiting(report) == RankSet{0});
  CHECK(got == 1);
  CHECK(std::get<Deadlock>(report.verdict).finding.culprits == RankSet{2});
}

TEST_CASE("a member of gloo's gather that has handed its part over goes on", "[fiber][partly]") {
  const Report report = run_on_gloo(3, [](Rank rank) {
    if (rank != 2) {
      gather(
          Tensor::ones({1}),
          rank == 0 ? TensorList{Tensor::zeros({1}), Tensor::zeros({1}), Tensor::zeros({1})} : TensorList(),
          0);
    }
  });
  CHECK(waiting(report) == RankSet{0});
}

// Measured with PyTorch 1.13, 2.6 and 2.14: whichever rank calls, it continues within 0.1 s.
TEST_CASE("a ring that carries no elements waits for nobody on gloo", "[fiber][partly]") {
  const auto none = [] { return Tensor::zeros({0}); };
  const std::vector<std::function<void()>> calls = {
      [&] { all_reduce(none()); },
      [&] { all_reduce(none(), {.async_op = true}).wait(); },
      [&] { reduce(none(), 1); },
      [&] { all_gather({none(), none()}, none()); },
  };
  for (const Rank caller : {0, 1}) {
    for (const std::function<void()>& call : calls) {
      const Report report = run_on_gloo(2, [&](Rank rank) {
        if (rank == caller) {
          call();
        }
      });
      CHECK(std::holds_alternative<Completed>(report.verdict));
    }
    const Report tree = run_on_gloo(2, [&](Rank rank) {
      if (rank == caller) {
        broadcast(none(), 0);
      }
    });
    CHECK(waiting(tree) == RankSet{caller});
  }
}

TEST_CASE("a call without elements takes its number all the same", "[fiber][partly]") {
  const Report report = run_on_gloo(2, [](Rank rank) {
    if (rank == 0) {
      all_reduce(Tensor::zeros({0}));
    }
    all_reduce(Tensor::ones({4}));
  });
  CHECK_FALSE(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("on nccl all members of a broadcast wait for the missing one", "[fiber][partly]") {
  const Report report = sim::run({.world_size = 4, .backend = "nccl"}, [](Rank rank) {
    if (rank != 2) {
      const Tensor tensor = Tensor::ones({2}, Dtype::float32, this_rank().device);
      broadcast(tensor, 0);
      tensor.at(0);
    }
  });
  CHECK(waiting(report) == RankSet{0, 1, 3});
}

TEST_CASE("who got through may let the missing one come, and what it does meanwhile changes nothing",
          "[fiber][partly]") {
  double late = 0;
  const Report report = run_on_gloo(4, [&](Rank rank) {
    const Tensor tensor = Tensor::full({2}, rank + 1.0);
    if (rank == 2) {
      recv(Tensor::zeros({1}), 3);
    }
    broadcast(tensor, 0);
    if (rank == 3) {
      tensor.fill_(100);
      send(Tensor::ones({1}), 2);
    }
    late += rank == 2 ? tensor.at(1) : 0;
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
  CHECK(late == 1);
}

}  // namespace rollcall::partly_test
