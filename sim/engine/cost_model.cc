#include "sim/engine/cost_model.h"

#include <bit>

namespace rollcall::sim {

Duration UniformCost::of(OpKind kind, std::int64_t bytes, Rank members) const {
  const auto steps =
      static_cast<Duration>(std::bit_width(static_cast<std::uint32_t>(members > 1 ? members - 1 : 1)));
  // A reduction's bytes go out and come back; everything else moves once.
  const std::int64_t crossings = kind == OpKind::all_reduce ? 2 : 1;
  return steps * step_latency + bytes / bytes_per_microsecond * crossings * microsecond;
}

}  // namespace rollcall::sim
