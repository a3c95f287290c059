#pragma once

// How much memory there is, and how much this process has taken: asked of the system, in bytes.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace rollcall::cli {

// What can still be taken before the machine, or the control group this process is in, runs out. Nothing where the
// system does not say. `root` is where /proc and /sys are.
std::optional<std::int64_t> available_memory(const std::filesystem::path& root = "/");

// What lies in memory for this process; 0 where the system does not say. Needs little stack, and no memory.
std::int64_t memory_in_use();

// How much address space is left (`ulimit -v`). Nothing: there is no limit.
std::optional<std::int64_t> available_addresses();

// What one rank takes at the least: a page of stack, and its part of the engine's tables.
inline constexpr std::int64_t least_bytes_per_rank = 4'300;

}  // namespace rollcall::cli
