#include "sim/engine/compute_times.h"

#include <cmath>
#include <set>

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::sim::compute_times_test {

TEST_CASE("without faults computing takes what the program says", "[faults]") {
  ComputeTimes times({}, {}, 4, 7);
  CHECK(times.next(3, 5 * millisecond) == 5 * millisecond);
}

TEST_CASE("slow ranks are slower by their factor, and several factors multiply", "[faults]") {
  ComputeTimes times({{RankSet{1, 2}, 3 * one_whole}, {RankSet{2}, one_whole / 2}}, {}, 4, 0);
  CHECK(times.next(0, 100) == 100);
  CHECK(times.next(1, 100) == 300);
  CHECK(times.next(2, 100) == 150);
}

TEST_CASE("jitter adds up to its part, differently each time, and the same for one seed", "[faults]") {
  const std::vector<Jitter> jitter{{RankSet{0, 1}, one_whole / 10}};
  ComputeTimes once({}, jitter, 2, 42);
  ComputeTimes again({}, jitter, 2, 42);
  ComputeTimes other({}, jitter, 2, 43);
  std::set<Duration> seen;
  bool differs = false;
  Duration sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const Duration duration = once.next(0, 1'000'000);
    CHECK(duration >= 1'000'000);
    CHECK(duration <= 1'100'000);
    CHECK(duration == again.next(0, 1'000'000));
    differs = differs || duration != other.next(0, 1'000'000);
    seen.insert(duration);
    sum += duration;
  }
  CHECK(seen.size() > 900);
  CHECK(differs);
  CHECK(std::abs(sum / 1000 - 1'050'000) < 5'000);
}

TEST_CASE("what chance gives a rank does not depend on what other ranks do", "[faults]") {
  const std::vector<Jitter> jitter{{RankSet{0, 1}, one_whole}};
  ComputeTimes alone({}, jitter, 2, 1);
  ComputeTimes crowded({}, jitter, 2, 1);
  for (int i = 0; i < 10; ++i) {
    crowded.next(0, 1000);
    CHECK(alone.next(1, 1000) == crowded.next(1, 1000));
  }
}

TEST_CASE("no factor makes a time overflow", "[faults]") {
  ComputeTimes times({{RankSet{0}, 1'000'000 * one_whole}}, {{RankSet{0}, 1000 * one_whole}}, 1, 0);
  CHECK(times.next(0, INT64_MAX / 2) > 0);
}

TEST_CASE("a slow rank delays everybody, on the host and on its GPU", "[fiber][faults]") {
  const auto time = [](std::vector<SlowRanks> slow, bool on_gpu) {
    return run({.world_size = 4, .slow = std::move(slow)},
               [on_gpu](Rank) {
                 if (on_gpu) {
                   launch_kernel(10 * millisecond);
                 } else {
                   compute(10 * millisecond);
                 }
                 all_reduce(Tensor::ones({1}, Dtype::float32, this_rank().device));
               })
        .simulated_time;
  };
  for (const bool on_gpu : {false, true}) {
    CAPTURE(on_gpu);
    CHECK(time({{RankSet{2}, 3 * one_whole}}, on_gpu) - time({}, on_gpu) == 20 * millisecond);
  }
}

}  // namespace rollcall::sim::compute_times_test
