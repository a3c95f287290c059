#include "sim/engine/start_order.h"

#include <algorithm>
#include <utility>

#include "sim/base/split_mix.h"
#include "sim/c10d/backend_traits.h"

namespace rollcall::sim {

std::vector<Rank> start_order(Rank world_size, std::uint64_t seed) {
  std::vector<Rank> order = RankSet::range(0, world_size - 1).to_vector();
  if (seed == 0) {
    return order;
  }
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[draw(seed) % left]);
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
