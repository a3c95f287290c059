#pragma once

// The releases of PyTorch that a run can stand for. What they differ in: torch_traits.h.

#include <cstdint>

namespace rollcall {

// In order: what came with a release, later ones have too.
enum class TorchRelease : std::uint8_t { v1_13, v2_6, v2_14 };

inline constexpr TorchRelease newest_torch = TorchRelease::v2_14;
inline constexpr TorchRelease no_torch{0xff};  // since then: in no release that is known

struct TorchTraits;
const TorchTraits& traits_of(TorchRelease release);

}  // namespace rollcall
