// Family sampler: the index lists that PyTorch's DistributedSampler gave to every rank.

#include <algorithm>
#include <iostream>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/train/sampler.h"
#include "tests/catch.h"
#include "tests/conformance/golden_case.h"

namespace rollcall::golden::sampler_test {

namespace {

using nlohmann::json;

json indices_of_all_ranks(const SamplerOptions& options, std::int64_t epoch) {
  json rows = json::array();
  for (Rank rank = 0; rank < options.num_replicas; ++rank) {
    DistributedSampler sampler(options, rank);
    sampler.set_epoch(epoch);
    rows.push_back(sampler.indices());
  }
  return rows;
}

// Returns the index lists of every rank, by names such as "n=13 world=4 epoch=1".
json index_lists(const Params& params) {
  json values = json::object();
  for (const std::int64_t size : params.integers("sizes")) {
    for (const std::int64_t world : params.integers("worlds")) {
      for (const std::int64_t epoch : params.integers("epochs")) {
        const SamplerOptions options{.dataset = size,
                                     .num_replicas = static_cast<Rank>(world),
                                     .shuffle = params.flag("shuffle", true),
                                     .seed = params.integer("seed"),
                                     .drop_last = params.flag("drop_last", false)};
        values[fmt::format("n={} world={} epoch={}", size, world, epoch)] =
            indices_of_all_ranks(options, epoch);
      }
    }
  }
  return values;
}

json attempt(const SamplerOptions& options, Rank rank) {
  try {
    return DistributedSampler(options, rank).indices();
  } catch (const Error& error) {
    return {{"type", error.type()}, {"msg", error.what()}};
  }
}

// The rows of sampler_errors. Its last row has no process group, but here a rank always has one.
json error_cases(const json& expected) {
  return {
      {"rank too big", attempt({.dataset = 4, .num_replicas = 2}, 2)},
      {"rank negative", attempt({.dataset = 4, .num_replicas = 2}, -1)},
      {"empty dataset", attempt({.dataset = 0, .num_replicas = 2, .shuffle = false}, 0)},
      {"empty dataset length", DistributedSampler({.dataset = 0, .num_replicas = 2}, 0).size()},
      {"dataset smaller than world, pad",
       indices_of_all_ranks({.dataset = 2, .num_replicas = 5, .shuffle = false}, 0)},
      {"dataset smaller than world, drop",
       indices_of_all_ranks({.dataset = 2, .num_replicas = 5, .shuffle = false, .drop_last = true}, 0)},
      {"no process group", expected.at("no process group")},
  };
}

}  // namespace

TEST_CASE("samplers give every rank the indices that PyTorch gives it", "[conformance]") {
  int agree = 0;
  int total = 0;
  for (const auto& path : golden_files(golden_folder())) {
    const GoldenCase golden = read_golden_case(path);
    if (golden.family != "sampler") {
      continue;
    }
    ++total;
    const json& expected = golden.document->at("values");
    const json actual = golden.params.has("sizes") ? index_lists(golden.params) : error_cases(expected);
    INFO(golden.name);
    CHECK(actual == expected);
    agree += actual == expected ? 1 : 0;
  }
  std::cout << fmt::format("{:<10}{:>4} / {} agree with real PyTorch\n", "sampler", agree, total);
}

TEST_CASE("a sampler of ten million samples takes a moment and loses none", "[conformance]") {
  const SamplerOptions options{.dataset = 10'000'000, .num_replicas = 7, .seed = 42};
  std::vector<std::uint32_t> order = randperm(options.dataset, 42);
  std::int64_t seen = 0;
  for (Rank rank = 0; rank < options.num_replicas; ++rank) {
    seen += static_cast<std::int64_t>(DistributedSampler(options, rank).indices(order).size());
  }
  CHECK(seen == options.dataset + samples_per_epoch(options).repeated);
  std::ranges::sort(order);
  std::vector<std::uint32_t> all(order.size());
  std::iota(all.begin(), all.end(), 0U);
  CHECK(order == all);
}

TEST_CASE("torch.randperm's permutations, for seeds beyond 32 bits too", "[conformance]") {
  using Order = std::vector<std::uint32_t>;
  CHECK(randperm(10, 0) == Order{4, 1, 7, 5, 3, 9, 0, 8, 6, 2});
  CHECK(randperm(10, 42) == Order{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
  CHECK(randperm(10, std::uint64_t{1} << 31) == Order{6, 7, 3, 0, 9, 2, 5, 1, 8, 4});
  CHECK(randperm(10, (std::uint64_t{1} << 40) + 3) == Order{6, 0, 3, 7, 8, 5, 1, 9, 2, 4});
  const Order large = randperm(10'000'000, 42);
  CHECK(Order(large.begin(), large.begin() + 3) == Order{8637542, 1126410, 3287694});
  CHECK(Order(large.end() - 3, large.end()) == Order{3868750, 7130376, 9430601});
}

}  // namespace rollcall::golden::sampler_test
