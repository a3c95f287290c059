#pragma once

// The process of one rank: connects, runs the program, logs how it ended, and waits to be released.

#include "real/launch/launch.h"
#include "real/process/process.h"
#include "real/rank/backend_entry.h"
#include "real/rank/recorder.h"

namespace rollcall::real {

struct Worker {
  const Options& options;
  const Program& program;
  const BackendEntry& backend;
  const RunClock& clock;
  Seat seat;
  Descriptor hub;      // its connection to the hub
  Descriptor log;      // for its records
  Descriptor hold;     // the process lingers until it is closed at the other end
  std::string errors;  // the file for standard error
};

// Does not return: leaves the process without running destructors, which could hang in the backend.
[[noreturn]] void run_worker(Worker worker);

// The last nonempty line of a file; empty if there is none.
std::string last_words(const std::string& path);

}  // namespace rollcall::real
