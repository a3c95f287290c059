#pragma once

// Runs ranks of a script, each a process of its own, in the simulator. Each is a fiber here that reads its process's
// requests and blocks where the process would block: so a standstill is noticed at once.

#include <chrono>
#include <string>
#include <vector>

#include "real/process/process.h"
#include "sim/c10d/op.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct SimulatedRanks {
  bool stands_still = false;  // ranks wait, and nothing can move
  RankSet silent;             // neither made a call nor ended, for longer than the patience
  std::string problem;        // with the connections; empty if there is none
  Report report;  // of the run itself, as far as it got; calls have the script's lines and no labels

  // True if it ended, or reached a proven standstill.
  bool is_whole() const { return report.world_size > 0 && silent.empty() && problem.empty(); }
};

// `connections` by rank; `records` is the folder that the ranks write to; each of the `ranks_per_host` ranks of a host
// has the GPU of its number there. `timeline`: whether the report has one. Returns when all ranks have ended, when they
// stand still, or when one is silent.
SimulatedRanks simulate_ranks(std::vector<real::Descriptor> connections, const std::string& records,
                              Rank ranks_per_host, std::chrono::milliseconds patience, bool timeline);

}  // namespace rollcall::scenario
