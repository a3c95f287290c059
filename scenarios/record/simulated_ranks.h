#pragma once

// Ranks of a script that run as processes of their own and meet in the simulator. Each is a fiber here that reads what
// its process asks for and blocks where that would block: so when nothing can move any more, it shows at once.

#include <chrono>
#include <string>
#include <vector>

#include "real/process/process.h"
#include "sim/c10d/op.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct SimulatedRanks {
  bool stands_still = false;  // ranks wait, and nothing can move any more
  RankSet silent;             // have neither called anything nor ended, for longer than the patience
  std::string problem;        // of the connections; empty: none
  Report report;  // of the run itself, as far as it went; calls have the script's lines and no labels

  // Did it come to its end, or to a proven standstill?
  bool is_whole() const { return report.world_size > 0 && silent.empty() && problem.empty(); }
};

// `connections` by rank; `records` is the folder that the ranks write to; of `ranks_per_host` each has a GPU of its
// number there. `timeline`: of the report.
// Returns when all ranks have ended, when they stand still, or when one is silent.
SimulatedRanks simulate_ranks(std::vector<real::Descriptor> connections, const std::string& records,
                              Rank ranks_per_host, std::chrono::milliseconds patience, bool timeline);

}  // namespace rollcall::scenario
