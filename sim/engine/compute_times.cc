#include "sim/engine/compute_times.h"

#include <algorithm>

#include "sim/base/split_mix.h"

namespace rollcall::sim {

namespace {

__extension__ using Wide = __int128;

constexpr Duration longest = INT64_MAX / 4;  // two of them can be added to a time

Duration scaled(Duration duration, Millionths factor) {
  const Wide product = static_cast<Wide>(duration) * factor / one_whole;
  return static_cast<Duration>(std::min<Wide>(product, longest));
}

}  // namespace

ComputeTimes::ComputeTimes(const std::vector<SlowRanks>& slow, const std::vector<Jitter>& jitter,
                           Rank world_size, std::uint64_t seed, Decisions* decisions)
    : seed_(seed), decisions_(decisions) {
  if (slow.empty() && jitter.empty()) {
    return;
  }
  ranks_.resize(static_cast<std::size_t>(world_size));
  for (const SlowRanks& each : slow) {
    for (const Rank rank : each.ranks.to_vector()) {
      Millionths& factor = ranks_[static_cast<std::size_t>(rank)].factor;
      factor = scaled(factor, each.factor);
    }
  }
  for (const Jitter& each : jitter) {
    for (const Rank rank : each.ranks.to_vector()) {
      ranks_[static_cast<std::size_t>(rank)].jitter = each.most;
    }
  }
}

Duration ComputeTimes::next(Rank rank, Duration duration) {
  if (ranks_.empty()) [[likely]] {
    return duration;
  }
  OfRank& own = ranks_[static_cast<std::size_t>(rank)];
  const Duration plain = scaled(duration, own.factor);
  if (own.jitter == 0) {
    return plain;
  }
  return jittered(decisions_, plain, own.jitter, seed_, rank, own.computes++);
}

Duration jittered(Decisions* decisions, Duration duration, Millionths most, std::uint64_t seed, Rank rank,
                  std::uint64_t count) {
  constexpr std::size_t as_drawn = 0;
  constexpr std::size_t nothing = 1;
  std::size_t way = as_drawn;
  if (decisions != nullptr && !decisions->draws_delays()) {
    decisions->drew_delay();
  } else if (decisions != nullptr) {
    way = decisions->decide({.kind = Decision::Kind::delay, .rank = rank, .ways = 3});
  }
  if (way == nothing) {
    return duration;
  }
  const std::uint64_t drawn = mixed(mixed(mixed(seed) + static_cast<std::uint64_t>(rank)) + count);
  const auto part = static_cast<Millionths>(drawn % static_cast<std::uint64_t>(most + 1));
  return std::min(longest, duration + scaled(duration, way == as_drawn ? part : most));
}

}  // namespace rollcall::sim
