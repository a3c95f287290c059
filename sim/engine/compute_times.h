#pragma once

// How long computing takes on each rank: slow ranks, and chance. Integer arithmetic; the jitter
// depends on the seed, the rank and how often it has computed, so no schedule can change it.

#include <cstdint>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/engine/decisions.h"
#include "sim/report/rank_set.h"

namespace rollcall::sim {

// A factor in millionths: 3'000'000 is three times.
using Millionths = std::int64_t;
inline constexpr Millionths one_whole = 1'000'000;

struct SlowRanks {
  RankSet ranks;
  Millionths factor = one_whole;  // of every compute
};

struct Jitter {
  RankSet ranks;
  Millionths most = 0;  // up to this part is added, uniformly distributed
};

// A rank's process ends, as by SIGKILL.
struct Crash {
  RankSet ranks;
  Time at = 0;
};

// `duration` plus up to `most` of it, the amount drawn from the seed, the rank and how often it has drawn. Unless
// `decisions` is null, it decides the amount: as drawn, nothing, or all of it.
Duration jittered(Decisions* decisions, Duration duration, Millionths most, std::uint64_t seed, Rank rank,
                  std::uint64_t count);

class ComputeTimes {
 public:
  ComputeTimes() = default;
  ComputeTimes(const std::vector<SlowRanks>& slow, const std::vector<Jitter>& jitter, Rank world_size,
               std::uint64_t seed, Decisions* decisions = nullptr);

  // How long the next compute of `rank` takes, if it takes `duration` on a rank without faults.
  Duration next(Rank rank, Duration duration);

 private:
  struct OfRank {
    Millionths factor = one_whole;
    Millionths jitter = 0;
    std::uint64_t computes = 0;
  };

  std::vector<OfRank> ranks_;  // empty without faults
  std::uint64_t seed_ = 0;
  Decisions* decisions_ = nullptr;
};

}  // namespace rollcall::sim
