#include "sim/train/sampler.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"

namespace rollcall {

std::vector<std::uint32_t> randperm(std::int64_t n, std::uint64_t seed) {
  if (n < 0 || n > permutation_max) {
    throw ValueError(
        fmt::format("a permutation of {} samples: at most {} are supported", n, permutation_max));
  }
  std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 generator(static_cast<std::uint32_t>(seed));  // the same sequence on every platform
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const std::size_t other = i + static_cast<std::uint32_t>(generator()) % (order.size() - i);
    std::swap(order[i], order[other]);
  }
  return order;
}

DistributedSampler::DistributedSampler(const SamplerOptions& options, Rank rank)
    : options_(options), rank_(rank) {
  if (rank >= options.num_replicas || rank < 0) {
    throw ValueError(fmt::format("Invalid rank {}, rank should be in the interval [0, {}]", rank,
                                 options.num_replicas - 1));
  }
  if (options.dataset < 0) {
    throw ValueError("__len__() should return >= 0");
  }
}

std::int64_t DistributedSampler::size() const { return samples_per_epoch(options_).per_rank; }

std::vector<std::int64_t> DistributedSampler::indices() const {
  if (options_.shuffle) {
    return indices(randperm(options_.dataset, static_cast<std::uint64_t>(options_.seed + epoch_)));
  }
  std::vector<std::uint32_t> order(static_cast<std::size_t>(options_.dataset));
  std::iota(order.begin(), order.end(), 0U);
  return indices(order);
}

std::vector<std::int64_t> DistributedSampler::indices(const std::vector<std::uint32_t>& order) const {
  std::vector<std::int64_t> mine(static_cast<std::size_t>(size()));
  std::size_t place = static_cast<std::size_t>(rank_);
  for (std::int64_t& index : mine) {
    index = order[place % order.size()];  // padding repeats the list from its beginning
    place += static_cast<std::size_t>(options_.num_replicas);
  }
  return mine;
}

EpochSamples samples_per_epoch(const SamplerOptions& options) {
  const std::int64_t replicas = options.num_replicas;
  EpochSamples samples;
  samples.per_rank =
      options.drop_last ? options.dataset / replicas : (options.dataset + replicas - 1) / replicas;
  const std::int64_t total = samples.per_rank * replicas;
  samples.repeated = std::max<std::int64_t>(0, total - options.dataset);
  samples.dropped = std::max<std::int64_t>(0, options.dataset - total);
  return samples;
}

EpochSamples samples_per_epoch(const SamplerOptions& options, const std::vector<std::int64_t>& seeds) {
  EpochSamples samples = samples_per_epoch(options);
  std::vector<Rank> first_seen(static_cast<std::size_t>(options.dataset), -1);
  std::vector<bool> shared(first_seen.size(), false);
  for (std::size_t rank = 0; rank < seeds.size(); ++rank) {
    SamplerOptions own = options;
    own.seed = seeds[rank];
    for (const std::int64_t index : DistributedSampler(own, static_cast<Rank>(rank)).indices()) {
      const auto sample = static_cast<std::size_t>(index);
      shared[sample] =
          shared[sample] || (first_seen[sample] >= 0 && first_seen[sample] != static_cast<Rank>(rank));
      first_seen[sample] = static_cast<Rank>(rank);
    }
  }
  samples.repeated = std::ranges::count(shared, true);
  samples.dropped = std::ranges::count(first_seen, -1);
  return samples;
}

SampleUse sample_use(const SamplerOptions& options, std::vector<std::int64_t> seeds, std::int64_t batch_size,
                     bool drop_short_batch) {
  SampleUse use{.shuffle = options.shuffle, .dataset = options.dataset, .ranks = options.num_replicas};
  use.batch_size = batch_size;
  use.drop_short_batch = drop_short_batch;
  if (options.shuffle) {
    use.seeds = std::move(seeds);
  }
  const EpochSamples samples =
      use.seeds.empty() ? samples_per_epoch(options) : samples_per_epoch(options, use.seeds);
  use.fewest = use.most = samples.per_rank;
  use.repeated = samples.repeated;
  use.dropped_by_sampler = samples.dropped;
  use.dropped_by_loader = drop_short_batch ? samples.per_rank % batch_size * options.num_replicas : 0;
  return use;
}

std::int64_t shard_size(std::int64_t dataset, Rank num_replicas, Rank rank) {
  return dataset / num_replicas + (rank < dataset % num_replicas ? 1 : 0);
}

}  // namespace rollcall
