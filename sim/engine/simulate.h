#pragma once

// sim::run: runs a rank program on N virtual ranks and judges what happens.
//
//   Report report = sim::run({.world_size = 4, .backend = "gloo"}, [](Rank rank) {
//     for (int i = 0; i < 5 + rank; ++i) all_reduce(Tensor::ones({1}));
//   });
//
// Ranks are fibers on one OS thread. Time is simulated, order is deterministic: the same options and
// program give the same report on every machine.

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/c10d/backend.h"
#include "sim/c10d/store_state.h"
#include "sim/cost/topology.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/decisions.h"
#include "sim/report/report.h"
#include "sim/torch/torch_release.h"

namespace rollcall::sim {

using Program = std::function<void(Rank)>;

// For Backend::compute(), in a simulated run: until something else happens, or for no time if nothing can. A program
// that waits for what is not simulated passes it.
inline constexpr Duration until_next_event = std::numeric_limits<Duration>::max();

// TORCH_DISTRIBUTED_DEBUG. `detail` compares collectives between ranks before running them.
enum class DebugLevel { off, detail };

struct Limits {
  std::int64_t ops = 1'000'000'000;  // issued calls and loop iterations of all ranks
  Duration simulated_time = 1'000'000 * second;
  std::int64_t memory_bytes = 0;  // of this process, if a Watch reports it; 0: no limit
  // These keep a run within the memory of one machine.
  std::int64_t output_lines = 1'000'000;         // printed by all ranks
  std::int64_t pending_arrivals = 50'000'000;    // members x pending collectives, of one group
  std::int64_t store_bytes = 256 * 1024 * 1024;  // keys and values
  std::int64_t dense_bytes = std::int64_t{4} * 1024 * 1024 * 1024;  // results of one call, all members
};

// The progress of a run.
struct Progress {
  std::int64_t ops = 0;
  Rank ended = 0;
  Time simulated_time = 0;
};

// Callbacks for following a run from outside, called every 65,536 steps. They cannot change how the run ends, except
// when memory runs out.
struct Watch {
  std::function<void(const Progress& progress)> progress{};
  std::function<std::int64_t()> memory_in_use{};  // bytes
};

struct Group {
  std::string name;
  std::vector<Rank> ranks;  // global
  Duration timeout = 0;     // of its calls; 0: the run's
};

struct Options {
  Rank world_size = 1;
  std::uint64_t seed = 0;
  std::string backend = "nccl";            // or "gloo"
  TorchRelease torch = newest_torch;       // the PyTorch release that the run simulates
  std::vector<Device> devices{};           // per rank; empty: cuda:<local rank> on nccl, cpu on gloo
  Rank ranks_per_host = 8;                 // as many as most hosts have GPUs; each host has its own cuda:0
  std::vector<Rank> hosts{};               // by rank: its host's number; empty: blocks of ranks_per_host
  std::optional<cost::Cluster> cluster{};  // for predicting durations, on nccl; null: a uniform model
  bool residuals = false;                  // correct NCCL's own estimates by measurements
  std::vector<SlowRanks> slow{};           // factors of several entries multiply
  std::vector<Jitter> jitter{};
  std::vector<Crash> crashes{};  // of several for one rank, the earliest counts
  std::vector<Group> groups{};   // besides "world"
  StoreState store{};            // what the store holds at the beginning
  DebugLevel debug = DebugLevel::off;
  // How many collective kernels a GPU can run at once; the others wait in launch order. 0: any number.
  int comm_slots = 0;
  // On nccl: communicators are made with their group, as when init_process_group gets a device_id, and not
  // by the first calls that need them.
  bool eager_communicators = false;
  Limits limits{};
  bool timeline = false;
  // The size of a rank's stack. 0: 256 KiB, or less beyond 1,024 ranks. Up to that many ranks, a rank that needs more
  // ends the process with a message and exit code 4.
  std::int64_t stack_bytes = 0;

  // A deadlock is a proof: no rank can make progress. These two continue the run as the real job
  // would continue: waiting ranks get their timeout error, and peers of a finished process see its connection
  // close. The verdict stays that of the proof. A rank whose peers are merely slow gives up as well.
  Duration timeout = 0;              // 0: waiting ranks stay blocked
  bool finished_ranks_exit = false;  // a finished rank's process exits at once

  // If true, groups that a rank has not destroyed when it finishes are a finding of their own (resource_leak), and so
  // are, on Gloo, asynchronous calls that it has not waited for.
  bool check_leaks = false;

  // Ranks whose programs are not known to their ends, as in a recording of a hung job: what they would call next may be
  // just what others wait for.
  RankSet open_ends{};

  // Decides everything that is left to timing and chance; borrowed. Null: the usual way is taken everywhere.
  Decisions* decisions = nullptr;

  // Wraps every rank's backend, for recorders; called rank by rank, from 0. Null: none.
  std::function<std::unique_ptr<Backend>(Backend&)> decorate{};
  // Called once with the states of the ranks when a watchdog would act: nothing can move anymore, a
  // rank has waited for too long, or all are done. After that, the run shows only how the real job notices. Null: none.
  std::function<void(std::span<const RankClass::State> ranks)> on_settled{};
  Watch watch{};

  std::optional<SampleUse> samples{};  // if the program's inputs come from a dataset, for the report

  // If a run fails and its evidence does not say which rank is to blame, the program is run again in a child process:
  // each rank alone, with calls that complete at once (sim/engine/rehearsal.h, sim/engine/apart.h). Variables and
  // output are not affected; effects on files and other machines happen again. If false, the program is never run
  // again, and the report may blame a tie, or a missing call, where one rank's call is wrong.
  bool may_run_again = true;
  // The program is also run with changed calls, to find the smallest change under which all ranks finish (sim/repair).
  bool tries_repairs = true;
};

// Never throws because of what the program does. Throws std::invalid_argument for impossible options.
Report run(const Options& options, const Program& program);

// The same in two steps, for callers that run a program many times and complete only the report that they show:
// run_once judges a run by its own evidence alone, and complete adds the results of running the program again
// (sim/judge/complete.h).
Report run_once(const Options& options, const Program& program);
void complete(Report& report, const Options& options, const Program& program);

}  // namespace rollcall::sim
