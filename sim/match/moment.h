#pragma once

// A moment of a rank: what it has done by then, and what others had done of which it can know. A vector clock (Fidge,
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
  // Whether the other one has come before this in every run that is like it.
  bool comes_after(const Moment& other) const {
    const auto at = static_cast<std::size_t>(other.rank);
    return seen[at] >= other.seen[at];
  }
};

}  // namespace rollcall::check
