#include "sim/tensor/device.h"

#include "sim/base/parse_number.h"

namespace rollcall {

std::string to_string(Device device) {
  switch (device.type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::cuda:
      return "cuda:" + std::to_string(device.index);
    case DeviceType::meta:
      return "meta";
  }
  return {};
}

std::optional<Device> parse_device(std::string_view text) {
  if (text == "cpu") {
    return Device{DeviceType::cpu, 0};
  }
  if (text == "meta") {
    return Device{DeviceType::meta, 0};
  }
  if (text == "cuda") {
    return Device{DeviceType::cuda, 0};
  }
  constexpr std::string_view prefix = "cuda:";
  const auto index =
      text.starts_with(prefix) ? parse_number<std::int16_t>(text.substr(prefix.size())) : std::nullopt;
  return index && *index >= 0 ? std::optional(Device{DeviceType::cuda, *index}) : std::nullopt;
}

}  // namespace rollcall
