#pragma once

// What a run's options say about individual ranks: the order in which they start, and where they run.

#include <vector>

#include "sim/engine/simulate.h"

namespace rollcall::sim {

// All ranks, in the order in which they first run. Seed 0 is 0, 1, 2, ...; others shuffle.
std::vector<Rank> start_order(Rank world_size, std::uint64_t seed);

Rank host_of_rank(const Options& options, Rank rank);
// The rank's number among the ranks of its host.
Rank local_rank_of(const Options& options, Rank rank);
Device device_of_rank(const Options& options, Rank rank);

}  // namespace rollcall::sim
