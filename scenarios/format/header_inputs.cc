// The part of HeaderReader for inputs that follow from a dataset, a batch size, and a sampler.

#include "scenarios/format/header_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "sim/train/sampler.h"

namespace rollcall::scenario {
namespace {

// With a seed per rank, the samples that each rank reads are counted one by one.
constexpr std::int64_t counted_samples_max = 10'000'000;

}  // namespace

// One number for all ranks, or a list with each rank's own. Empty if they are all the same.
std::vector<std::int64_t> HeaderReader::read_sampler_seeds(const Json& seed) {
  std::vector<std::int64_t> seeds;
  if (!seed.is(JsonType::array)) {
    return seeds;
  }
  for (const Json& own : seed.children()) {
    seeds.push_back(own.integer());
  }
  if (static_cast<Rank>(seeds.size()) != scenario_.options.world_size) {
    error(seed, fmt::format("expected one seed per rank: {} needed, {} given", scenario_.options.world_size,
                            seeds.size()));
    return {};
  }
  return std::ranges::count(seeds, seeds.front()) == std::ssize(seeds) ? std::vector<std::int64_t>() : seeds;
}

void HeaderReader::read_sampled_inputs(const Json& inputs) {
  for (const char* key : {"base", "per_rank"}) {
    if (const auto stray = inputs.find(key)) {
      error(*stray, fmt::format("give either \"dataset\" or \"{}\"", key));
    }
  }
  const Rank world_size = scenario_.options.world_size;
  const std::int64_t dataset = inputs.find("dataset")->integer();
  std::int64_t in_batch = 1;
  bool drops_short_batch = false;
  inputs.read("batch_size", in_batch);
  inputs.read("drop_last", drops_short_batch);
  const auto sampler = inputs.find("sampler");
  SamplerOptions options{.dataset = dataset, .num_replicas = world_size};
  bool is_sharded = false;
  std::vector<std::int64_t> seeds;  // empty: all the same
  if (sampler) {
    const auto kind = sampler->find("kind");
    is_sharded = kind && kind->text() == "shard";
    sampler->read("drop_last", options.drop_last);
    sampler->read("shuffle", options.shuffle);
    if (const auto seed = sampler->find("seed")) {
      seeds = read_sampler_seeds(*seed);
      if (!seeds.empty() && dataset > counted_samples_max) {
        error(
            *seed,
            fmt::format("with a seed per rank, at most {} samples are supported, found {}; scale the dataset "
                        "down, and the batches with it",
                        counted_samples_max, dataset));
        return;
      }
    }
    for (const char* key : {"shuffle", "seed", "drop_last"}) {
      if (const auto stray = sampler->find(key); stray && is_sharded) {
        error(*stray, fmt::format("a shard has no \"{}\"; only a DistributedSampler does", key));
      }
    }
  }
  SampleUse& use = scenario_.options.samples.emplace();
  if (!is_sharded) {
    use = sample_use(options, std::move(seeds), in_batch, drops_short_batch);
    scenario_.inputs.base = use.batches(use.most);
    return;
  }
  use = {.sampler = SampleUse::Sampler::shard,
         .shuffle = options.shuffle,
         .dataset = dataset,
         .ranks = world_size};
  use.batch_size = in_batch;
  use.drop_short_batch = drops_short_batch;
  use.most = shard_size(dataset, world_size, 0);
  use.fewest = shard_size(dataset, world_size, world_size - 1);
  for (Rank rank = 0; rank < world_size; ++rank) {
    const std::int64_t given = shard_size(dataset, world_size, rank);
    scenario_.inputs.list.push_back(use.batches(given));
    use.dropped_by_loader += drops_short_batch ? given % in_batch : 0;
  }
}

}  // namespace rollcall::scenario
