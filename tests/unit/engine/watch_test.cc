// Runs with an observer.

#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "sim/engine/watched_steps.h"
#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::watch_test {
namespace {

void reduce_often(std::int64_t times) {
  const Tensor number = one();
  for (std::int64_t i = 0; i < times; ++i) {
    all_reduce(number);
  }
}

}  // namespace

TEST_CASE("a run is looked at between portions of its steps, and says how far it is", "[limits][fiber]") {
  Options options = gloo(4);
  std::vector<Progress> seen;
  options.watch.progress = [&seen](const Progress& progress) { seen.push_back(progress); };
  const std::int64_t calls = WatchedSteps::portion;  // per rank
  const Report report = run(options, [calls](Rank rank) { reduce_often(rank == 0 ? calls / 2 : calls); });
  CHECK(word(report) == "deadlock");
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].ops == WatchedSteps::portion);
  CHECK(seen[1].simulated_time > seen[0].simulated_time);
  CHECK(seen[1].ended == 1);
}

TEST_CASE("looking at a run changes nothing", "[limits][fiber]") {
  const auto program = [](Rank rank) { reduce_often(40'000 + rank); };
  Options watched = gloo(4);
  watched.watch.progress = [](const Progress&) {};
  watched.watch.memory_in_use = [] { return std::int64_t{1} << 40; };
  const Report a = run(gloo(4), program);
  const Report b = run(watched, program);  // without a limit, memory is not watched
  CHECK(finding(a).headline == finding(b).headline);
  CHECK(a.ops == b.ops);
  CHECK(a.simulated_time == b.simulated_time);
}

TEST_CASE("a run that takes more memory than it may is stopped", "[limits][fiber]") {
  Options options = gloo(4);
  options.limits.memory_bytes = 3'000'000;
  std::int64_t taken = 0;
  options.watch.memory_in_use = [&taken] { return taken += 1'000'000; };
  const Report report = run(options, [](Rank) { reduce_often(1'000'000); });
  CHECK(kind(report) == "limit_reached memory");
  CHECK(finding(report).headline == "stopped at 2 MiB of memory");
  CHECK(report.ops <= 4 * WatchedSteps::portion);
  CHECK(report.of(0).state == State::running);
}

TEST_CASE("a tensor that is too large ends a run, and is no exception of the program's", "[limits][fiber]") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  const Report report = run(gloo(2), [most](Rank rank) {
    try {
      if (rank == 1) {
        Tensor::zeros({most}).storage()->make_dense();
      }
    } catch (const Error&) {
      print("caught");
    }
    all_reduce(one());
  });
  CHECK(kind(report) == "limit_reached memory");
  CHECK(finding(report).headline == "stopped because there was no memory left");
  CHECK(report.output.empty());
}

TEST_CASE("where memory ends in the middle of something, there is no verdict", "[limits][fiber]") {
  const auto program = [](Rank rank) {
    if (rank == 1) {
      throw std::bad_alloc();
    }
    all_reduce(one());
  };
  CHECK_THROWS_AS(run(gloo(2), program), std::bad_alloc);
}

TEST_CASE("steps are given out in portions, and none beyond the last", "[limits]") {
  int looked = 0;
  WatchedSteps steps(2 * WatchedSteps::portion + 3, [&looked] { ++looked; });
  for (std::int64_t i = 0; i < 2 * WatchedSteps::portion + 3; ++i) {
    steps.spend();
  }
  CHECK(looked == 2);
  CHECK_THROWS_AS(steps.spend(), StepLimitReached);
  CHECK_THROWS_AS(steps.spend(), StepLimitReached);
}

TEST_CASE("a budget that is closed has no steps left", "[limits]") {
  WatchedSteps steps(1'000'000, nullptr);
  steps.spend();
  steps.close();
  CHECK_THROWS_AS(steps.spend(), StepLimitReached);
}

}  // namespace rollcall::sim::watch_test
