#pragma once

// The part of a vector clock that can still matter: how many of each rank's notices in transit it knows. Clocks are
// compared with such notices only, so two clocks that know the same ones are equivalent for all that follows.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/encoding.h"
#include "sim/match/moment.h"

namespace rollcall::check {

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
