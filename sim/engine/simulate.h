#pragma once

// sim::run: run a rank program on N virtual ranks and judge what happens.
//
//   Report report = sim::run({.world_size = 4, .backend = "gloo"}, [](Rank rank) {
//     for (int i = 0; i < 5 + rank; ++i) all_reduce(Tensor::ones({1}));
//   });
//
// Ranks are fibers on one OS thread. Time is simulated, order is deterministic: the same options and
// program give the same report on every machine.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/c10d/backend.h"
#include "sim/cost/topology.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/decisions.h"
#include "sim/report/report.h"
#include "sim/torch/torch_release.h"

namespace rollcall::sim {

using Program = std::function<void(Rank)>;

// TORCH_DISTRIBUTED_DEBUG. `detail` compares collectives between ranks before running them.
enum class DebugLevel { off, detail };

struct Limits {
  std::int64_t ops = 1'000'000'000;  // issued calls and loop iterations of all ranks
  Duration simulated_time = 1'000'000 * second;
  std::int64_t memory_bytes = 0;  // of this process, where a Watch knows it; 0: none
  // These keep a run inside the memory of one machine.
  std::int64_t output_lines = 1'000'000;         // printed by all ranks
  std::int64_t pending_arrivals = 50'000'000;    // members x collectives under way, of one group
  std::int64_t store_bytes = 256 * 1024 * 1024;  // keys and values
  std::int64_t dense_bytes = std::int64_t{4} * 1024 * 1024 * 1024;  // results of one call, all members
};

// How far a run has come.
struct Progress {
  std::int64_t ops = 0;
  Rank ended = 0;
  Time simulated_time = 0;
};

// Whoever follows a run from outside is asked every 65,536 steps. Nothing here can change what the run comes to, but
// for memory that runs out.
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
  TorchRelease torch = newest_torch;       // the PyTorch that the run stands for
  std::vector<Device> devices{};           // per rank; empty: cuda:<local rank> on nccl, cpu on gloo
  Rank ranks_per_host = 8;                 // as most machines have GPUs. Equal devices of two hosts differ
  std::vector<Rank> hosts{};               // by rank: its host's number; empty: blocks of ranks_per_host
  std::optional<cost::Cluster> cluster{};  // what durations are predicted for, on nccl; none: a uniform model
  bool residuals = false;                  // add what measurements add to NCCL's own expectation
  std::vector<SlowRanks> slow{};           // factors of several entries multiply
  std::vector<Jitter> jitter{};
  std::vector<Crash> crashes{};  // of several for one rank the earliest counts
  std::vector<Group> groups{};   // besides "world"
  DebugLevel debug = DebugLevel::off;
  // How many collective kernels a GPU runs at once; the others wait in launch order. 0: any number.
  int comm_slots = 0;
  // On nccl: communicators are there when a group is, as when init_process_group is given a device_id, and are not
  // made by the calls that first need them.
  bool eager_communicators = false;
  Limits limits{};
  bool timeline = false;
  // Of a rank's stack. 0: 256 KiB, or less beyond 1,024 ranks. Up to that many, a rank that needs more ends the process
  // with a message and exit code 4.
  std::int64_t stack_bytes = 0;

  // A deadlock is a proof: nothing can move any more. These two continue the story as the real job
  // would: waiting ranks get their timeout error, and peers of a finished process its closed
  // connection. The verdict stays that of the proof. A rank whose peers are merely slow gives up as well.
  Duration timeout = 0;              // 0: waiting ranks simply stay
  bool finished_ranks_exit = false;  // a finished rank's process leaves at once

  // Groups that a rank has not destroyed when it finishes are then a finding of their own (resource_leak), and so
  // are, on Gloo, asynchronous calls that it has not waited for.
  bool check_leaks = false;

  // Who decides what is left to timing and chance; borrowed. Null: the usual way is taken everywhere.
  Decisions* decisions = nullptr;

  // Wraps every rank's backend, for recorders; called rank by rank, from 0. Null: none.
  std::function<std::unique_ptr<Backend>(Backend&)> decorate{};
  // Called once with the states of the ranks when a watchdog would have its say: nothing can move any more, a
  // rank has waited for too long, or all are done. What follows is only how the real job notices. Null: nobody.
  std::function<void(std::span<const RankClass::State> ranks)> on_settled{};
  Watch watch{};

  std::optional<SampleUse> samples{};  // where the program's inputs come from a data set, for the report

  // Where a run fails and its evidence does not say who is to blame, the program is run again in a child process: each
  // rank alone, in calls that complete at once (sim/engine/rehearsal.h, sim/engine/apart.h). Variables and output stay
  // as they were; what the program does to files and other machines, it does again. False: it never is run again.
  // Then the report may blame a tie, or a missing call, where one rank's call is wrong.
  bool may_run_again = true;
  // So it is with changed calls, to find the smallest change under which all ranks finish (sim/repair).
  bool tries_repairs = true;
};

// Never throws for what the program does. Throws std::invalid_argument for impossible options.
Report run(const Options& options, const Program& program);

// The same in two steps, for those who run a program many times and complete the one report that they show: a run that
// is judged by its own evidence alone, and what running the program again adds to that (sim/judge/complete.h).
Report run_once(const Options& options, const Program& program);
void complete(Report& report, const Options& options, const Program& program);

}  // namespace rollcall::sim
