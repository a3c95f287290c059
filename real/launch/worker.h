#pragma once

// The process of one rank: connects, runs the program, logs how it ended, and waits to be released.

#include "real/launch/launch.h"
#include "real/process/process.h"
#include "real/rank/backend_entry.h"
#include "real/rank/recorder.h"

namespace rollcall::real {

// The parts of a run that are the same for all ranks, wherever they are started.
struct Plan {
  Options options;
  const Program& program;
  const BackendEntry& backend;
  std::vector<GroupMembers> groups;  // by GroupId
};

struct Worker {
  // Throws std::system_error.
  Worker(const Plan& run, const RunClock& run_clock, Rank rank, std::string error_file);

  const Plan& plan;
  const RunClock& clock;
  Seat seat;
  Descriptor hub{};    // its connection to the hub
  Pipe log{};          // for its records
  Pipe hold{};         // the process lingers until the other end is closed
  std::string errors;  // the file for standard error
};

// In the rank's process. Does not return: leaves the process without running destructors, which could hang in the
// backend.
[[noreturn]] void run_worker(Worker worker);

// The last nonempty line of a file; empty if there is none.
std::string last_words(const std::string& path);

}  // namespace rollcall::real
