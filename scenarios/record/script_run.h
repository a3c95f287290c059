#pragma once

// Runs a PyTorch script as every rank of a job, with answers to torch.distributed from here, and records its calls.

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "real/process/process.h"
#include "scenarios/record/simulated_ranks.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// What answers the calls of the ranks.
enum class Answers {
  fake,      // each rank runs alone, with the results that it would get if all others did the same
  simulator  // the simulator, with the true results
};

struct ScriptOptions {
  Rank world_size = 1;
  std::string script;
  std::vector<std::string> arguments{};
  std::string python{};                         // empty: the first that has torch
  std::chrono::milliseconds patience{600'000};  // with a rank that makes no calls and does not end
  bool pretends_gpus = true;                    // if there is none and the script asks for one
  bool says_that_it_pretends = true;            // prints one line about it
  bool begins_on_gpus = false;                  // as if the script had asked for one already
  Rank gpus_per_host = 0;                       // one rank each; 0: all ranks are on one host
  Rank sampled =
      0;  // runs this many ranks first, and the others only if those differ from each other; 0: runs all
  bool kernels = false;        // also records what GPUs would compute
  std::string kernels_from{};  // a trace of torch.profiler with their times; may be empty
  bool timeline = false;       // of the simulated run
  bool is_silent = false;      // the ranks' output is not shown
  std::string records{};       // the folder to keep the ranks' records in; empty: they are not kept
};

// Thrown if there is no Python with torch. The message is for the user.
struct NoTorch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ScriptRun {
  traces::ScriptRecord record;
  SimulatedRanks simulated;      // if the simulator answered
  bool was_interrupted = false;  // by a signal: the record has the calls made until then
  bool began_on_gpus = false;    // as in the options, or because the script turned out to need it
};

// Runs the script again if it asks for a GPU after its job has begun on a backend that depends on that.
// Prints the ranks' output on standard error. When it returns, no process of the job is left. SIGINT, SIGTERM, and
// SIGHUP end the ranks, and it returns. Throws NoTorch, and std::system_error.
ScriptRun run_script(const ScriptOptions& options, Answers answers);

// Runs a command that starts real ranks, such as torchrun, and records them as they run. `records`: as above. Returns
// when the command has ended; its exit code goes to `code`. Throws std::system_error.
traces::ScriptRecord run_live(const std::vector<std::string>& command, const std::string& records, int& code);

}  // namespace rollcall::scenario
