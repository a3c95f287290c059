#pragma once

// Devices as scenarios write them: "cpu", "cuda:1", "cuda:{local_rank}".

#include <cstdint>
#include <string_view>

#include "scenarios/json/diagnostic.h"
#include "sim/c10d/op.h"
#include "sim/tensor/device.h"

namespace rollcall::scenario {

// "cuda:{local_rank}" and the like.
struct DeviceTemplate {
  enum class Index : std::uint8_t { fixed, rank, local_rank };

  Device device;
  Index index = Index::fixed;

  Device resolve(Rank rank, Rank local_rank) const;
  friend auto operator<=>(const DeviceTemplate&, const DeviceTemplate&) = default;
};

// `local_ranks` is the largest number of ranks that share a host: device numbers must suffice for
// them.
Parsed<DeviceTemplate> parse_device_template(std::string_view text, Rank world_size, Rank local_ranks);

}  // namespace rollcall::scenario
