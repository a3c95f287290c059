#pragma once

// The releases of PyTorch that a run can simulate. torch_traits.h lists their differences.

#include <cstdint>

namespace rollcall {

// In order: later releases keep what an earlier one introduced.
enum class TorchRelease : std::uint8_t { v1_13, v2_6, v2_11, v2_14 };

inline constexpr TorchRelease newest_torch = TorchRelease::v2_14;
inline constexpr TorchRelease no_torch{0xff};  // as a `since`: not in any known release

struct TorchTraits;
const TorchTraits& traits_of(TorchRelease release);

}  // namespace rollcall
