#pragma once

// Runs a PyTorch script as every rank of a job, with torch.distributed answered by ourselves, and keeps what it asked
// for.

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "real/process/process.h"
#include "scenarios/record/simulated_ranks.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// Who answers the calls of the ranks.
enum class Answers {
  fake,      // nobody: each rank runs alone, and gets what it would if all others did the same
  simulator  // the simulator, with the true results
};

struct ScriptOptions {
  Rank world_size = 1;
  std::string script;
  std::vector<std::string> arguments{};
  std::string python{};                         // empty: the first that has torch
  std::chrono::milliseconds patience{600'000};  // with a rank that calls nothing and does not end
  bool pretends_gpus = true;                    // where there is none and the script asks for one
  bool says_that_it_pretends = true;            // in one line
  Rank gpus_per_host = 0;                       // for one rank each; 0: all ranks are on one host
  Rank sampled =
      0;  // so many ranks are run first, and the others only if these are not alike; 0: all are run
  bool kernels = false;        // record what GPUs would compute, too
  std::string kernels_from{};  // a trace of torch.profiler with times of theirs; may be empty
  bool timeline = false;       // of the simulated run
  bool is_silent = false;      // what the ranks print is not shown
  std::string records{};       // the folder to keep the ranks' records in; empty: they are not kept
};

// There is no Python with torch here.
struct NoTorch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ScriptRun {
  traces::ScriptRecord record;
  SimulatedRanks simulated;      // where the simulator answered
  bool was_interrupted = false;  // by a signal: the record is of what was called until then
};

// Prints what the ranks print on standard error. When it returns, no process of the job is left. SIGINT, SIGTERM and
// SIGHUP end the ranks, and it returns. Throws NoTorch, and std::system_error.
ScriptRun run_script(const ScriptOptions& options, Answers answers);

// Runs a command that starts real ranks, such as torchrun, and records them as they go. `records`: as above. Returns
// when the command has ended; its exit code goes to `code`. Throws std::system_error.
traces::ScriptRecord run_live(const std::vector<std::string>& command, const std::string& records, int& code);

}  // namespace rollcall::scenario
