// work.wait(timeout): a limit on one wait.

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::wait_timeout_test {

TEST_CASE("a wait with a limit gives up, and the call goes on", "[fiber][timeout]") {
  const Report report = sim::run({.world_size = 2, .backend = "gloo"}, [](Rank rank) {
    compute(rank == 1 ? 5 * second : 0);
    const Tensor tensor = Tensor::ones({1});
    const Work work = all_reduce(tensor, {.async_op = true});
    if (rank == 0) {
      CHECK_THROWS_WITH(work.wait(2 * second), "Operation timed out!");
      CHECK_FALSE(work.is_completed());
    }
    work.wait();
    CHECK(tensor.item() == 2);
    barrier();  // the group's connections are intact
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("a wait with a limit that is kept is a wait", "[fiber][timeout]") {
  for (const char* backend : {"gloo", "nccl"}) {
    const Report report = sim::run({.world_size = 2, .backend = backend}, [](Rank rank) {
      compute(rank * second);
      const Tensor tensor = Tensor::ones({1}, Dtype::float32, this_rank().device);
      all_reduce(tensor, {.async_op = true}).wait(2 * second);
      CHECK(tensor.item() == 2);
    });
    CHECK(std::holds_alternative<Completed>(report.verdict));
  }
}

TEST_CASE("a limit on a wait for nobody tells who is missing", "[fiber][timeout]") {
  const sim::Options options{.world_size = 2, .backend = "nccl", .eager_communicators = true};
  const Report report = sim::run(options, [](Rank rank) {
    if (rank == 0) {
      all_reduce(Tensor::ones({1}, Dtype::float32, this_rank().device), {.async_op = true}).wait(second);
    }
  });
  const Finding* finding = finding_of(report.verdict);
  REQUIRE(finding != nullptr);
  CHECK(finding->culprits == RankSet{1});
  CHECK(report.of(0).state == RankClass::State::raised);
}

TEST_CASE("gloo says whether it gave up sending or receiving", "[fiber][timeout]") {
  sim::run({.world_size = 2, .backend = "gloo", .timeout = 2 * second}, [](Rank rank) {
    if (rank == 0) {
      CHECK_THROWS_WITH(send(Tensor::ones({1}), 1), Contains("2000ms for send operation"));
    }
  });
  sim::run({.world_size = 2, .backend = "gloo", .timeout = 2 * second}, [](Rank rank) {
    if (rank == 0) {
      CHECK_THROWS_WITH(recv(Tensor::ones({1}), 1), Contains("2000ms for recv operation"));
    }
  });
  sim::run({.world_size = 2, .backend = "gloo", .timeout = 2 * second}, [](Rank rank) {
    if (rank == 0) {
      CHECK_THROWS_WITH(broadcast(Tensor::ones({1}), 0), Contains("2000ms for send operation"));
    }
  });
}

}  // namespace rollcall::wait_timeout_test
