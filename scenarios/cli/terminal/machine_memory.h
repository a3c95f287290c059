#pragma once

// Asks the system how much memory there is and how much this process uses, in bytes.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace rollcall::cli {

// The memory that is left before the machine, or this process's control group, runs out. Empty if the
// system does not say. `root` is where /proc and /sys are.
std::optional<std::int64_t> available_memory(const std::filesystem::path& root = "/");

// The resident memory of this process; 0 if the system does not say. Needs little stack, and no memory.
std::int64_t memory_in_use();

// The address space that is left (`ulimit -v`). Empty if there is no limit.
std::optional<std::int64_t> available_addresses();

// The minimum for one rank: a page of stack, and its part of the engine's tables.
inline constexpr std::int64_t least_bytes_per_rank = 4'300;

}  // namespace rollcall::cli
