#include "scenarios/program/devices.h"

#include <cstdint>

#include <fmt/core.h>

namespace rollcall::scenario {
namespace {

// "cuda:{rank}" is "cuda:" and a number that differs by rank.
std::optional<DeviceTemplate::Index> parse_index(std::string_view text) {
  if (text == "cuda:{local_rank}") {
    return DeviceTemplate::Index::local_rank;
  }
  return text == "cuda:{rank}" ? std::optional(DeviceTemplate::Index::rank) : std::nullopt;
}

}  // namespace

Device DeviceTemplate::resolve(Rank rank, Rank local_rank) const {
  if (index == Index::fixed) {
    return device;
  }
  return {device.type, static_cast<std::int16_t>(index == Index::rank ? rank : local_rank)};
}

Parsed<DeviceTemplate> parse_device_template(std::string_view text, Rank world_size, Rank local_ranks) {
  if (const auto index = parse_index(text)) {
    const Rank devices = *index == DeviceTemplate::Index::rank ? world_size : local_ranks;
    if (devices > INT16_MAX) {
      return {{},
              fmt::format("\"{}\" would need {} devices on one host; set the number per host with "
                          "\"cluster\": {{\"gpus_per_node\": 8}}",
                          text, devices)};
    }
    return {DeviceTemplate{{DeviceType::cuda, 0}, *index}, {}};
  }
  if (const auto device = parse_device(text)) {
    return {DeviceTemplate{*device, DeviceTemplate::Index::fixed}, {}};
  }
  return {{},
          fmt::format("\"{}\" is not a device; devices are \"cpu\", \"cuda:0\" and \"cuda:{{local_rank}}\"",
                      text)};
}

}  // namespace rollcall::scenario
