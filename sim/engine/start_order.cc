#include "sim/engine/start_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/c10d/backend_traits.h"

namespace rollcall::sim {
namespace {

// splitmix64: fixed integer arithmetic, the same on every platform, unlike the standard distributions.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<Rank> start_order(Rank world_size, std::uint64_t seed) {
  std::vector<Rank> order(static_cast<std::size_t>(world_size));
  std::iota(order.begin(), order.end(), 0);
  if (seed == 0) {
    return order;
  }
  SplitMix64 random(seed);
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.next() % left]);
  }
  return order;
}

Rank host_of_rank(const Options& options, Rank rank) {
  return options.hosts.empty() ? rank / options.ranks_per_host
                               : options.hosts[static_cast<std::size_t>(rank)];
}

Rank local_rank_of(const Options& options, Rank rank) {
  if (options.hosts.empty()) {
    return rank % options.ranks_per_host;
  }
  const auto own = options.hosts.begin() + rank;
  return static_cast<Rank>(std::count(options.hosts.begin(), own, *own));
}

Device device_of_rank(const Options& options, Rank rank) {
  if (!options.devices.empty()) {
    return options.devices[static_cast<std::size_t>(rank)];
  }
  if (traits_of(options.backend).device == DeviceType::cpu) {
    return cpu_device;
  }
  return {DeviceType::cuda, static_cast<std::int16_t>(local_rank_of(options, rank))};
}

}  // namespace rollcall::sim
