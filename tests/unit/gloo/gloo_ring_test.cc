// Rings whose members disagree. The outcomes required here were seen on PyTorch 1.13; the golden files named with them
// have the runs.

#include "sim/gloo/gloo_algorithms.h"

#include <algorithm>
#include <cstring>

#include "tests/catch.h"

namespace rollcall::sim::gloo_ring_test {
namespace {

using check::Fate;

template <typename T>
gloo::Member member(const std::vector<T>& values, Dtype dtype, ReduceOp reduce = ReduceOp::sum) {
  gloo::Member made{.function = GlooFunction::all_reduce,
                    .dtype = dtype,
                    .reduce = reduce,
                    .memory = std::vector<std::byte>(values.size() * sizeof(T)),
                    .steps = {}};
  if (!values.empty()) {
    std::memcpy(made.memory.data(), values.data(), made.memory.size());
  }
  return made;
}

gloo::Member floats(std::size_t count, float value) {
  return member(std::vector<float>(count, value), Dtype::float32);
}

template <typename T>
std::vector<T> values_of(const gloo::Member& from) {
  std::vector<T> values(from.memory.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), from.memory.data(), from.memory.size());
  }
  return values;
}

std::vector<gloo::Outcome> run_ring(std::vector<gloo::Member>& members) {
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    gloo::Member& one = members[rank];
    one.steps = gloo::all_reduce_steps({rank, members.size()}, one.memory.size(), size_of(one.dtype));
  }
  return gloo::exchange(members, traits_of(TorchRelease::v1_13));
}

std::vector<Fate> fates(std::vector<gloo::Member> members) {
  std::vector<Fate> result;
  for (const gloo::Outcome& outcome : run_ring(members)) {
    result.push_back(outcome.fate);
  }
  return result;
}

}  // namespace

TEST_CASE("a ring that agrees is a plain reduction, for every size and number of ranks", "[gloo_ring]") {
  for (std::size_t ranks = 2; ranks <= 9; ++ranks) {
    for (const std::size_t count : {0u, 1u, 2u, 3u, 5u, 7u, 8u, 16u, 17u, 100u, 1001u}) {
      std::vector<gloo::Member> members;
      std::vector<std::int64_t> expected(count, 0);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::vector<std::int64_t> values(count);
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = static_cast<std::int64_t>((rank + 1) * 1000 + i);
          expected[i] += values[i];
        }
        members.push_back(member(values, Dtype::int64));
      }
      for (const gloo::Outcome& outcome : run_ring(members)) {
        REQUIRE(outcome.fate == Fate::completes);
        REQUIRE(outcome.failure.empty());
      }
      for (const gloo::Member& one : members) {
        REQUIRE(values_of<std::int64_t>(one) == expected);
      }
    }
  }
}

TEST_CASE("a buffer of several segments reduces as well", "[gloo_ring]") {
  constexpr std::size_t count = 3 * 1024 * 1024 + 5;  // just over 3 MiB: segments are at most 1 MiB
  std::vector<gloo::Member> members(2, member(std::vector<std::uint8_t>(count, 3), Dtype::uint8));
  for (const gloo::Outcome& outcome : run_ring(members)) {
    REQUIRE(outcome.fate == Fate::completes);
  }
  const auto values = values_of<std::uint8_t>(members[1]);
  CHECK(std::all_of(values.begin(), values.end(), [](std::uint8_t value) { return value == 6; }));
}

TEST_CASE("maximum and product go round the ring too", "[gloo_ring]") {
  std::vector<gloo::Member> maxima{member<std::int32_t>({1, 9}, Dtype::int32, ReduceOp::max),
                                   member<std::int32_t>({5, 2}, Dtype::int32, ReduceOp::max)};
  run_ring(maxima);
  CHECK(values_of<std::int32_t>(maxima[0]) == std::vector<std::int32_t>{5, 9});
  std::vector<gloo::Member> products{member<double>({3}, Dtype::float64, ReduceOp::product),
                                     member<double>({5}, Dtype::float64, ReduceOp::product),
                                     member<double>({7}, Dtype::float64, ReduceOp::product)};
  run_ring(products);
  CHECK(values_of<double>(products[2]) == std::vector<double>{105});
}

TEST_CASE("one float meets four: the smaller completes, the larger hangs", "[gloo_ring]") {
  // mismatch_size_small: the hook's one element completes as 1.0, the active rank hangs.
  std::vector<gloo::Member> members{floats(1, 0), floats(4, 1)};
  const auto outcomes = run_ring(members);
  CHECK(outcomes[0].fate == Fate::completes);
  CHECK(values_of<float>(members[0]) == std::vector<float>{1});
  CHECK(outcomes[1].fate == Fate::hangs);
}

TEST_CASE("one float meets a thousand: the smaller aborts", "[gloo_ring]") {
  // mismatch_size_large_1000: "1000 vs 4".
  std::vector<gloo::Member> members{floats(1000, 0), floats(1, 1)};
  const auto outcomes = run_ring(members);
  CHECK(outcomes[1].fate == Fate::crashes);
  CHECK_THAT(outcomes[1].failure, EndsWith("op.preamble.length <= op.nbytes. 1000 vs 4"));
  CHECK(outcomes[0].fate != Fate::crashes);
}

TEST_CASE("float32 meets float64: the narrower aborts", "[gloo_ring]") {
  // mismatch_dtype_wider: "8 vs 4".
  std::vector<gloo::Member> members{member<double>({0}, Dtype::float64), member<float>({1}, Dtype::float32)};
  const auto outcomes = run_ring(members);
  CHECK(outcomes[1].fate == Fate::crashes);
  CHECK_THAT(outcomes[1].failure, EndsWith("8 vs 4"));
}

TEST_CASE("equal bytes of different dtypes complete, with garbage", "[gloo_ring]") {
  std::vector<gloo::Member> members{member<float>({1.5f}, Dtype::float32),
                                    member<std::int32_t>({1}, Dtype::int32)};
  for (const gloo::Outcome& outcome : run_ring(members)) {
    CHECK(outcome.fate == Fate::completes);
  }
}

TEST_CASE("two large against one small of three: the fates of the golden run", "[gloo_ring]") {
  // mismatch_size_small_w3: the joined rank completes with 2.0, both active ranks hang.
  std::vector<gloo::Member> members{floats(1, 0), floats(4, 1), floats(4, 1)};
  const auto outcomes = run_ring(members);
  CHECK(outcomes[0].fate == Fate::completes);
  CHECK(values_of<float>(members[0]) == std::vector<float>{2});
  CHECK(outcomes[1].fate == Fate::hangs);
  CHECK(outcomes[2].fate == Fate::hangs);
}

TEST_CASE("an empty tensor exchanges nothing and completes alone", "[gloo_ring]") {
  CHECK(fates({floats(0, 0), floats(4, 1)}) == std::vector<Fate>{Fate::completes, Fate::hangs});
}

TEST_CASE("every mixture of sizes has an end", "[gloo_ring]") {
  const std::size_t sizes[] = {0, 1, 2, 3, 4, 8, 13, 1000};
  for (const std::size_t a : sizes) {
    for (const std::size_t b : sizes) {
      for (const std::size_t c : sizes) {
        const auto result = fates({floats(a, 1), floats(b, 2), floats(c, 3)});
        const bool all_complete =
            std::all_of(result.begin(), result.end(), [](Fate fate) { return fate == Fate::completes; });
        if (a == b && b == c) {
          REQUIRE(all_complete);
        }
      }
    }
  }
}

}  // namespace rollcall::sim::gloo_ring_test
