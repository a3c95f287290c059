#pragma once

// Ranks of a script that run as processes of their own and meet in the simulator. Each is a fiber here that reads what
// its process asks for and blocks where that would block: so when nothing can move any more, it shows at once.

#include <chrono>
#include <string>
#include <vector>

#include "real/process/process.h"
#include "sim/c10d/op.h"
#include "sim/report/rank_set.h"

namespace rollcall::scenario {

struct SimulatedRanks {
  bool stands_still = false;  // ranks wait, and nothing can move any more
  RankSet silent;             // have neither called anything nor ended, for longer than the patience
  std::string problem;        // of the connections; empty: none
};

// `connections` by rank. Returns when all ranks have ended, when they stand still, or when one is silent.
SimulatedRanks simulate_ranks(std::vector<real::Descriptor> connections, std::chrono::milliseconds patience);

}  // namespace rollcall::scenario
