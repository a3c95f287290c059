#pragma once

// real::run: runs a rank program on N real ranks and judges what happened.
//
//   Report report = real::run({.world_size = 4}, [](Rank rank) {
//     for (int i = 0; i < 5 + rank; ++i) all_reduce(Tensor::ones({1}));
//   });
//
// The same programs and the same judge as sim::run, on processes instead of fibers. A wrong program can kill
// its process or hang forever, so each rank is a separate process under a supervisor with a deadline. The
// supervisor reads the logs of all ranks, and at the end gives the judge the same evidence that the simulator
// would.

#include <optional>

#include "real/rank/environment.h"
#include "real/rank/options.h"
#include "real/rank/run_log.h"
#include "sim/report/report.h"

namespace rollcall::real {

struct Run {
  Report report;
  RunLog log;
};

// Never throws because of what the program does. Throws Unavailable (real/rank/backend_entry.h) if the machine cannot
// run the backend, std::invalid_argument for impossible options, std::system_error if there are no processes,
// pipes or files left. No process and no file of the run remains when it returns or throws.
Run run(const Options& options, const Program& program);

// The same as one rank of a job that a launcher has started: `options.world_size` processes call this, each
// with its own `launched`, and find each other at the master's address, where rank 0 listens (env:// of torch).
// Returns when the run is over: the run on rank 0, null on the others. Also throws std::runtime_error if nothing
// listens at that address, or its port is taken.
std::optional<Run> run_launched(const Options& options, const Program& program, const LaunchedRank& launched);

}  // namespace rollcall::real
