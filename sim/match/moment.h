#pragma once

// A moment of a rank: what it has done by then, and what it can know of what others had done. A vector clock (Fidge,
// 1988; Mattern, 1989).

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::check {

struct Moment {
  Rank rank = -1;
  std::vector<std::uint32_t> seen{};  // by rank: how many of its messages

  void join(const Moment& other) {
    seen.resize(std::max(seen.size(), other.seen.size()));
    for (std::size_t i = 0; i < other.seen.size(); ++i) {
      seen[i] = std::max(seen[i], other.seen[i]);
    }
  }
  // True if the other moment comes before this one in every equivalent run.
  bool comes_after(const Moment& other) const {
    const auto at = static_cast<std::size_t>(other.rank);
    return seen[at] >= other.seen[at];
  }
};

}  // namespace rollcall::check
