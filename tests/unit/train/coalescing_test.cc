// _coalescing_manager: its results and its exceptions are those of real ranks on Gloo in tests/data/calls.

#include "sim/train/coalescing.h"

#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/stream.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::coalescing_test {
namespace {

Report run_on(TorchRelease release, const std::function<void(Rank)>& body,
              const std::string& backend = "gloo") {
  return sim::run({.world_size = 4, .backend = backend, .torch = release, .timeline = true}, body);
}

Tensor own(Rank rank, std::int64_t numel) { return Tensor::full({numel}, rank + 1); }

std::vector<std::string> calls_of(const Report& report, Rank rank) {
  std::vector<std::string> calls;
  for (const Span& span : report.timeline.spans()) {
    if (span.rank == rank && span.moves_data()) {
      calls.emplace_back(report.timeline.name(span.name));
    }
  }
  return calls;
}

std::string exception_of(TorchRelease release, const std::function<void(CoalescingManager&)>& body) {
  return run_on(release,
                [&](Rank) {
                  CoalescingManager manager;
                  body(manager);
                  manager.end();
                })
      .of(0)
      .exception;
}

}  // namespace

TEST_CASE("coalesced calls are one call, and leave what each would have left", "[fiber][coalescing]") {
  for (const TorchRelease release : {TorchRelease::v2_6, TorchRelease::v2_14}) {
    const Report report = run_on(release, [](Rank rank) {
      const Tensor pairs = Tensor::zeros({8});
      const Tensor threes = Tensor::zeros({12});
      CoalescingManager gather;
      gather.all_gather_into_tensor(pairs, own(rank, 2));
      gather.all_gather_into_tensor(threes, own(rank, 3));
      CHECK(pairs.to_vector() == std::vector<double>(8, 0));  // nothing happens before the end
      gather.end();
      CHECK(pairs.to_vector() == std::vector<double>{1, 1, 2, 2, 3, 3, 4, 4});
      CHECK(threes.to_vector() == std::vector<double>{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});

      const Tensor two = Tensor::zeros({2});
      const Tensor one = Tensor::zeros({1});
      CoalescingManager scatter;
      scatter.reduce_scatter_tensor(two, own(rank, 8));
      scatter.reduce_scatter_tensor(one, own(rank, 4));
      scatter.end();
      CHECK(two.to_vector() == std::vector<double>{10, 10});
      CHECK(one.to_vector() == std::vector<double>{10});

      const Tensor sum = own(rank, 2);
      CoalescingManager reduce;
      reduce.all_reduce(sum);
      reduce.all_reduce(own(rank, 5));
      reduce.end();
      CHECK(sum.to_vector() == std::vector<double>{10, 10});
    });
    CHECK(std::holds_alternative<Completed>(report.verdict));
    CHECK(calls_of(report, 2) == std::vector<std::string>{"all_gather_into_tensor", "reduce_scatter_tensor",
                                                          "all_reduce_coalesced"});
  }
}

TEST_CASE("parts of a coalesced reduce_scatter that differ go to their ranks", "[fiber][coalescing]") {
  const Report report = run_on(TorchRelease::v2_14, [](Rank rank) {
    const Tensor input = Tensor::of(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, Dtype::float32);
    const Tensor output = Tensor::zeros({2});
    const Tensor other = Tensor::zeros({1});
    CoalescingManager manager({.async_ops = true});
    manager.reduce_scatter_tensor(output, input);
    manager.reduce_scatter_tensor(other, Tensor::of(std::vector<double>{5, 6, 7, 8}, Dtype::float32));
    manager.end();
    CHECK_FALSE(manager.work().is_nothing());
    manager.wait();
    CHECK(output.to_vector() == std::vector<double>{4.0 * 2 * rank, 4.0 * (2 * rank + 1)});
    CHECK(other.to_vector() == std::vector<double>{4.0 * (5 + rank)});
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("what a _coalescing_manager refuses is the release's", "[fiber][coalescing]") {
  const auto nothing = [](CoalescingManager&) {};
  const auto short_one = [](CoalescingManager& manager) {
    manager.all_gather_into_tensor(Tensor::zeros({4}), Tensor::ones({2}));
    manager.all_gather_into_tensor(Tensor::zeros({4}), Tensor::ones({1}));
  };
  const auto mixed = [](CoalescingManager& manager) {
    manager.all_gather_into_tensor(Tensor::zeros({4}), Tensor::ones({1}));
    manager.all_reduce(Tensor::ones({1}));
  };
  CHECK(exception_of(TorchRelease::v1_13, nothing) ==
        "TypeError: _coalescing_manager() missing 2 required positional arguments: 'group' and 'reqs'");
  CHECK(exception_of(TorchRelease::v2_6, nothing) ==
        "UnboundLocalError: cannot access local variable 'work' where it is not associated with a value");
  CHECK(exception_of(TorchRelease::v2_14, nothing).empty());
  for (const TorchRelease release : {TorchRelease::v2_6, TorchRelease::v2_14}) {
    CHECK(exception_of(release, short_one) ==
          "RuntimeError: ProcessGroupGloo::allgather_coalesced: invalid size of output tensor at index 0 "
          "(expected length (2), got (1))");
  }
  CHECK(exception_of(TorchRelease::v2_6, mixed) ==
        "TypeError: Invariant encountered: value was None when it should not be");
  CHECK(exception_of(TorchRelease::v2_14, mixed) ==
        "RuntimeError: Coalescing manager requires all collectives to be the same type, but got mixed types: "
        "{'all_gather_single', 'all_reduce'}");
}

TEST_CASE("a rank without the coalesced call is missed by the others", "[fiber][coalescing]") {
  const Report report = run_on(
      TorchRelease::v2_14,
      [](Rank rank) {
        CoalescingManager manager;
        if (rank != 3) {
          manager.all_reduce(Tensor::ones({1}, Dtype::float32, this_rank().device));
        }
        manager.end();
        synchronize();
      },
      "nccl");
  CHECK(verdict_word(report.verdict) == "deadlock");
}

}  // namespace rollcall::coalescing_test
