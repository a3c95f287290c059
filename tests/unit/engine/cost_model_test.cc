#include "sim/engine/cost_model.h"

#include <catch2/catch.hpp>
#include <limits>

namespace rollcall::sim {
namespace {

constexpr UniformCost cost{.step_latency = 5 * microsecond, .bytes_per_microsecond = 1000};

}  // namespace

TEST_CASE("latency grows with the depth of a tree over the members", "[cost_model]") {
  const auto steps = [](Rank members) { return cost.of(OpKind::barrier, 0, members) / cost.step_latency; };
  CHECK(steps(2) == 1);
  CHECK(steps(3) == 2);
  CHECK(steps(4) == 2);
  CHECK(steps(5) == 3);
  CHECK(steps(8) == 3);
  CHECK(steps(9) == 4);
  CHECK(steps(100'000) == 17);
}

TEST_CASE("even a group of one takes time, so that a loop of calls ends in a limit", "[cost_model]") {
  CHECK(cost.of(OpKind::barrier, 0, 1) > 0);
}

TEST_CASE("bytes take time, and a reduction's cross the link twice", "[cost_model]") {
  const Duration none = cost.of(OpKind::broadcast, 0, 2);
  CHECK(cost.of(OpKind::broadcast, 3000, 2) - none == 3 * microsecond);
  CHECK(cost.of(OpKind::all_reduce, 3000, 2) - none == 6 * microsecond);
}

TEST_CASE("a large call is slower than a small one, without overflow", "[cost_model]") {
  constexpr std::int64_t terabyte = 1'000'000'000'000;
  CHECK(cost.of(OpKind::all_reduce, terabyte, 8) > cost.of(OpKind::all_reduce, terabyte / 2, 8));
}

}  // namespace rollcall::sim
