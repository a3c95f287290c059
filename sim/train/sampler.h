#pragma once

// Samplers: which samples of a dataset each rank sees. Bit-exact with PyTorch, so that a scenario can say
// how many batches a real job has on each rank, and which samples it sees twice or never.

#include <cstdint>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/report/sample_use.h"

namespace rollcall {

// torch.randperm(n, generator=torch.Generator().manual_seed(seed)) on the CPU: Fisher and Yates with one 32-bit draw
// per place (aten/src/ATen/native/TensorFactories.cpp, randperm_cpu), from a Mersenne twister that is seeded with the
// low 32 bits (ATen/core/MT19937RNGEngine.h). Throws ValueError for n below 0 or above permutation_max, where PyTorch
// releases differ.
inline constexpr std::int64_t permutation_max = 0xffffffff / 20;
std::vector<std::uint32_t> randperm(std::int64_t n, std::uint64_t seed);

// torch.utils.data.DistributedSampler (torch/utils/data/distributed.py). Every rank gets the same number of samples:
// missing ones are repeated from the beginning, or surplus ones are dropped.
struct SamplerOptions {
  std::int64_t dataset = 0;  // samples
  Rank num_replicas = 1;
  bool shuffle = true;
  std::int64_t seed = 0;
  bool drop_last = false;
};

class DistributedSampler {
 public:
  // Throws ValueError for a rank outside the replicas or a negative dataset.
  DistributedSampler(const SamplerOptions& options, Rank rank);

  void set_epoch(std::int64_t epoch) { epoch_ = epoch; }
  // len(sampler): samples of this rank per epoch.
  std::int64_t size() const;
  // list(sampler): this rank's samples of the epoch, in order.
  std::vector<std::int64_t> indices() const;
  // The same from `order`, a permutation of the dataset that several ranks share.
  std::vector<std::int64_t> indices(const std::vector<std::uint32_t>& order) const;

 private:
  SamplerOptions options_;
  Rank rank_;
  std::int64_t epoch_ = 0;
};

// One epoch, over all ranks.
struct EpochSamples {
  std::int64_t per_rank = 0;
  std::int64_t repeated = 0;  // seen a second time, to make the ranks even
  std::int64_t dropped = 0;   // seen by no rank
};
EpochSamples samples_per_epoch(const SamplerOptions& options);
// The same where each rank shuffles with a seed of its own: `repeated` are those that several ranks see.
EpochSamples samples_per_epoch(const SamplerOptions& options, const std::vector<std::int64_t>& seeds);

// The same for a report (sim::Options::samples), with the batches that a DataLoader makes. `seeds`: of the ranks' own
// shuffles, where they differ; else empty.
SampleUse sample_use(const SamplerOptions& options, std::vector<std::int64_t> seeds = {},
                     std::int64_t batch_size = 1, bool drop_short_batch = false);

// An iterable dataset, split into shards by the program: rank r takes samples r, r + replicas, ... Nothing evens the
// shards out.
std::int64_t shard_size(std::int64_t dataset, Rank num_replicas, Rank rank);

}  // namespace rollcall
