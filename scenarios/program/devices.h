#pragma once

// Devices as scenarios write them: "cpu", "cuda:1", "cuda:{local_rank}".

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/program/program.h"

namespace rollcall::scenario {

// A template, or the error in the text. Exactly one of the two.
struct ParsedDevice {
  std::optional<DeviceTemplate> device;
  std::string problem;
};

// `local_ranks` is the largest number of ranks that share a host: device numbers must suffice for
// them.
ParsedDevice parse_device_template(std::string_view text, Rank world_size, Rank local_ranks);

}  // namespace rollcall::scenario
