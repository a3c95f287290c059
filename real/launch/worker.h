#pragma once

// What the process of one rank does: connect, run the program, log how it went, wait to be let go.

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
  Descriptor log;      // records go there
  Descriptor hold;     // the process lingers until it is closed at the other end
  std::string errors;  // the file that takes standard error
};

// Does not return: leaves the process without running destructors, which could hang in the backend.
[[noreturn]] void run_worker(Worker worker);

// The last line of a file of errors that says something; empty when none does.
std::string last_words(const std::string& path);

}  // namespace rollcall::real
