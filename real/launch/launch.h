#pragma once

// real::run: run a rank program on N real ranks and judge what happened.
//
//   Report report = real::run({.world_size = 4}, [](Rank rank) {
//     for (int i = 0; i < 5 + rank; ++i) all_reduce(Tensor::ones({1}));
//   });
//
// The same programs and the same judge as sim::run, on processes instead of fibers. A wrong program can kill
// its process or hang for ever, so each rank is a process of its own under a supervisor with a deadline. The
// supervisor reads what every rank logs, and at the end gives sim/check the same evidence that the simulator
// would.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "real/launch/environment.h"
#include "real/launch/record.h"
#include "sim/dist/backend.h"
#include "sim/report/report.h"

namespace rollcall::real {

using Program = std::function<void(Rank)>;

struct Group {
  std::string name;
  std::vector<Rank> ranks;  // global
};

struct Options {
  Rank world_size = 1;
  std::string backend = "gloo";   // "gloo" or "nccl": see real/backends.h
  std::vector<Device> devices{};  // what get_device() says, per rank; empty: the CPU
  std::vector<Group> groups{};    // besides "world"
  // From the moment all ranks are connected. Ranks that can be proven to wait for ever are not given that long.
  Duration deadline = 10 * second;
  // How long nothing must have been heard before the supervisor asks whether anything can still happen. What
  // has been logged by then is all that has happened, even on a busy machine.
  Duration patience = 500 * millisecond;
  Duration timeout = 0;              // of the group's operations; 0: the backend's default
  bool finished_ranks_exit = false;  // otherwise a finished rank's process lingers until all are through
  double time_scale = 1;             // real seconds per second that the program computes
  std::int64_t ops = 1'000'000'000;  // issued calls and loop iterations of one rank
  bool timeline = false;
  bool check_leaks = false;  // every group must be destroyed
  // Wraps a rank's backend, inside of what logs its calls: for faults. Called in the rank's process. Null: none.
  std::function<std::unique_ptr<Backend>(Backend&, Rank)> decorate{};
};

// How a process that did not come to its own end ended.
struct Death {
  int signal = 0;      // 0: by exit
  int exit_code = 0;   // then
  std::string text{};  // the last words of its standard error; may be empty
};

// What a rank left behind. The records are in the order in which it wrote them.
struct RankLog {
  std::vector<Record> records;
  std::optional<Death> death;
};

struct RunLog {
  std::vector<RankLog> ranks;  // by global rank
  bool timed_out = false;      // the deadline passed, and the supervisor ended what was left
  Time end = 0;
};

struct Run {
  Report report;
  RunLog log;
};

// Never throws for what the program does. Throws Unavailable (real/backends.h) when the machine cannot run
// the backend, std::invalid_argument for impossible options, std::system_error when there are no processes,
// pipes or files left. No process and no file of the run is left when it returns or throws.
Run run(const Options& options, const Program& program);

// The same as one rank of a job that a launcher has started: `options.world_size` processes call this, each
// with its own place, and find each other at the master's address, where rank 0 listens (env:// of torch).
// Rank 0 gets the run; the others nothing, when it is over. Throws std::runtime_error besides, when there is
// nobody at that address or its port is taken.
std::optional<Run> run_launched(const Options& options, const Program& program, const LaunchedRank& launched);

}  // namespace rollcall::real
