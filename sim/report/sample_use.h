#pragma once

// SampleUse: how a dataset's samples are used in one epoch: which ones a sampler repeats or leaves out so that all
// ranks get the same number, and how that biases the epoch.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

struct SampleUse {
  enum class Sampler : std::uint8_t { distributed, shard };

  Sampler sampler = Sampler::distributed;
  bool shuffle = true;  // distributed
  std::int64_t dataset = 0;
  std::int64_t ranks = 1;
  std::int64_t batch_size = 1;
  std::vector<std::int64_t> seeds{};  // of the shuffles, by rank, where they differ; else empty
  bool drop_short_batch = false;      // the DataLoader's drop_last
  std::int64_t fewest = 0;  // samples of the rank with the fewest, and with the most, before batching
  std::int64_t most = 0;
  std::int64_t repeated = 0;  // by the sampler
  std::int64_t dropped_by_sampler = 0;
  std::int64_t dropped_by_loader = 0;  // with short batches, of all ranks together

  std::int64_t dropped() const { return dropped_by_sampler + dropped_by_loader; }
  std::int64_t batches(std::int64_t samples) const {
    return drop_short_batch ? samples / batch_size : (samples + batch_size - 1) / batch_size;
  }
};

inline std::string_view to_string(SampleUse::Sampler sampler) {
  return sampler == SampleUse::Sampler::shard ? "shard" : "distributed";
}

// "1001 samples: 251 for each of 4 ranks, in 26 batches of 10; 3 are seen twice per epoch (0.3 %)".
std::string samples_phrase(const SampleUse& use);
// How the epoch is biased, one sentence each; none when every sample counts the same.
std::vector<std::string> sample_biases(const SampleUse& use);

}  // namespace rollcall
