#pragma once

// Devices, as torch names them: "cpu", "cuda:0", "meta".

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rollcall {

enum class DeviceType : std::uint8_t { cpu, cuda, meta };

struct Device {
  DeviceType type = DeviceType::cpu;
  std::int16_t index = 0;  // only CUDA devices are numbered; 0 otherwise

  friend constexpr auto operator<=>(const Device&, const Device&) = default;
};

inline constexpr Device cpu_device{};

// "cpu", "cuda:3", "meta".
std::string to_string(Device device);

// Reads what to_string writes; "cuda" alone is "cuda:0". Empty when the text names no device.
std::optional<Device> parse_device(std::string_view text);

}  // namespace rollcall
