#include "real/backends/backends.h"

#include <array>

#include <fmt/core.h>

#ifdef ROLLCALL_HAS_GLOO
#include "real/gloo/gloo_backend.h"
#include "real/gloo/gloo_library.h"
#endif
#include "real/nccl/nccl_backend.h"

namespace rollcall::real {
namespace {

#ifdef ROLLCALL_HAS_GLOO
std::string gloo_obstacle(Rank) { return open_gloo_library(); }
#else
std::string gloo_obstacle(Rank) {
  return "gloo: rollcall was built without Gloo; install libgloo-dev and rebuild";
}
std::unique_ptr<Backend> connect_gloo(const Seat&) { throw Unavailable(gloo_obstacle(1)); }
#endif

constexpr std::array<BackendEntry, 2> entries{{
    {"nccl", nccl_obstacle, connect_nccl},
    {"gloo", gloo_obstacle, connect_gloo},
}};

}  // namespace

std::span<const BackendEntry> backends() { return entries; }

const BackendEntry& find_backend(std::string_view name, Rank ranks) {
  std::string obstacles;
  for (const BackendEntry& entry : entries) {
    if (name != entry.name && name != "auto") {
      continue;
    }
    const std::string obstacle = entry.obstacle(ranks);
    if (obstacle.empty()) {
      return entry;
    }
    obstacles += (obstacles.empty() ? "" : "; ") + obstacle;
  }
  if (obstacles.empty()) {
    throw std::invalid_argument(
        fmt::format("unknown backend \"{}\"; choose \"gloo\", \"nccl\" or \"auto\"", name));
  }
  throw Unavailable(obstacles);
}

}  // namespace rollcall::real
