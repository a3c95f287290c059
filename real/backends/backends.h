#pragma once

// The real backends: which of them this rollcall was built with, and which can work on this machine. Code
// outside this header does not know whether Gloo or NCCL was there at build time.

#include <span>
#include <string_view>

#include "real/rank/backend_entry.h"

namespace rollcall::real {

// Ordered by preference: "auto" takes the first that works.
std::span<const BackendEntry> backends();

// "gloo", "nccl", or "auto": the first that can run here. Throws Unavailable with the obstacle, and
// std::invalid_argument for another name.
const BackendEntry& find_backend(std::string_view name, Rank ranks);

}  // namespace rollcall::real
