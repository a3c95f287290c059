#pragma once

// A moment of a rank: what it has done by then, and what it can know of what others had done. A vector clock (Fidge,
// 1988; Mattern, 1989).

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/encoding.h"
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

// The part of a moment that can still matter: how many of each rank's notices in transit it knows. Clocks are compared
// with such notices only, so two clocks that know the same ones are equivalent for all that follows.
class LiveNotices {
 public:
  // A notice that was written at this moment has not arrived.
  void add(const Moment& written) {
    counts_[written.rank].push_back(written.seen[static_cast<std::size_t>(written.rank)]);
  }

  void write(Encoder& state, const Moment& moment) const {
    std::vector<std::pair<Rank, std::int64_t>> known;
    for (const auto& [rank, counts] : counts_) {
      const auto at = static_cast<std::size_t>(rank);
      const std::uint32_t seen = at < moment.seen.size() ? moment.seen[at] : 0;
      const auto of_them =
          std::ranges::count_if(counts, [seen](std::uint32_t count) { return count <= seen; });
      if (of_them > 0) {
        known.emplace_back(rank, of_them);
      }
    }
    state(static_cast<std::uint32_t>(known.size()));
    for (const auto& [rank, of_them] : known) {
      state(rank);
      state(of_them);
    }
  }

 private:
  std::map<Rank, std::vector<std::uint32_t>> counts_;
};

}  // namespace rollcall::check
