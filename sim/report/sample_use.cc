#include "sim/report/sample_use.h"

#include <fmt/core.h>

#include "sim/report/join_cost.h"

namespace rollcall {
namespace {

std::string share_phrase(std::int64_t part, std::int64_t whole) {
  return percent_phrase(whole == 0 ? 0 : (part * 1000 + whole / 2) / whole);
}

std::string range_phrase(std::int64_t fewest, std::int64_t most) {
  return fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
}

// The samples that an unshuffled sampler repeats are the first, those that it drops are the last.
std::string which_phrase(const SampleUse& use, std::int64_t first, std::int64_t count) {
  if (use.shuffle) {
    return "different ones in every epoch, if set_epoch is called";
  }
  return count == 1 ? fmt::format("always number {}", first)
                    : fmt::format("always numbers {} to {}", first, first + count - 1);
}

}  // namespace

std::string samples_phrase(const SampleUse& use) {
  std::string text = fmt::format("{} samples: {} for each of {} rank{}, in {} batch{} of {}", use.dataset,
                                 range_phrase(use.fewest, use.most), use.ranks, use.ranks == 1 ? "" : "s",
                                 range_phrase(use.batches(use.fewest), use.batches(use.most)),
                                 use.batches(use.most) == 1 ? "" : "es", use.batch_size);
  text += use.repeated == 0 ? "; none is seen twice"
                            : fmt::format("; {} seen twice per epoch ({})", use.repeated,
                                          share_phrase(use.repeated, use.dataset));
  text += use.dropped() == 0
              ? ", none is dropped"
              : fmt::format(", {} dropped ({})", use.dropped(), share_phrase(use.dropped(), use.dataset));
  return text;
}

std::vector<std::string> sample_biases(const SampleUse& use) {
  std::vector<std::string> biases;
  if (use.repeated > 0) {
    biases.push_back(fmt::format(
        "a metric over the epoch counts {} of {} samples more than once, up to {} of its value; {}",
        use.repeated, use.dataset, share_phrase(use.repeated, use.dataset + use.repeated),
        which_phrase(use, 0, use.repeated)));
  }
  if (use.dropped_by_sampler > 0) {
    biases.push_back(
        fmt::format("the sampler drops {} ({}); {}", use.dropped_by_sampler,
                    share_phrase(use.dropped_by_sampler, use.dataset),
                    which_phrase(use, use.dataset - use.dropped_by_sampler, use.dropped_by_sampler)));
  }
  if (use.dropped_by_loader > 0) {
    biases.push_back(fmt::format("the loaders drop short batches with {} samples ({})", use.dropped_by_loader,
                                 share_phrase(use.dropped_by_loader, use.dataset)));
  }
  const std::int64_t in_short_batch = use.most % use.batch_size;
  if (in_short_batch > 0 && !use.drop_short_batch && use.most > use.batch_size) {
    biases.push_back(fmt::format(
        "the last batch holds {}: if the loss is averaged per batch, each sample in it weighs {}.{} times as "
        "much as the others",
        in_short_batch, use.batch_size / in_short_batch, use.batch_size * 10 / in_short_batch % 10));
  }
  if (use.fewest != use.most) {
    biases.push_back(
        fmt::format("ranks differ by {} sample{}, but an average over ranks weighs all ranks equally",
                    use.most - use.fewest, use.most - use.fewest == 1 ? "" : "s"));
  }
  return biases;
}

}  // namespace rollcall
