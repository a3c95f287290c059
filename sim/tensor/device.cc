#include "sim/tensor/device.h"

#include <charconv>

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
  if (!text.starts_with(prefix)) {
    return std::nullopt;
  }
  const std::string_view digits = text.substr(prefix.size());
  std::int16_t index = 0;
  auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (failure != std::errc() || end != digits.data() + digits.size() || index < 0) {
    return std::nullopt;
  }
  return Device{DeviceType::cuda, index};
}

}  // namespace rollcall
