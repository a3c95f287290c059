#pragma once

// ForkedPool: pieces of work, each in a process of its own, a few at a time. Whatever happens to one (a crash,
// an endless loop, all memory taken) is one Ending, and nothing to the others. A fork of a small process takes
// well under a millisecond, so nothing is reused and no piece sees what an earlier one left behind.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "real/process/forked_work.h"

namespace rollcall::real {

struct ForkLimits {
  int jobs = 1;                 // at a time
  Duration time = 60 * second;  // of one piece, by the clock on the wall
  std::int64_t memory_bytes =
      std::int64_t{8} * 1024 * 1024 * 1024;  // of one piece, beyond what it begins with
};

class ForkedPool {
 public:
  using Work = std::function<std::string(std::size_t index)>;
  // Of the pieces in order, whichever ended first. False: no more are wanted.
  using Receive = std::function<bool(std::size_t index, Ending ending)>;
  // A piece was begun, or ended; `done` of all have.
  using Watch = std::function<void(std::size_t newest, std::size_t done)>;

  // `interrupted` is set by a signal handler, and borrowed.
  ForkedPool(const ForkLimits& limits, const volatile std::sig_atomic_t& interrupted)
      : limits_(limits), interrupted_(interrupted) {}

  // Runs `count` pieces. Returns early when `receive` wants no more or the run is interrupted; pieces under way are
  // killed then. Throws std::system_error when there can be no more processes.
  void run(std::size_t count, const Work& work, const Receive& receive, const Watch& watch = {});

 private:
  ForkLimits limits_;
  const volatile std::sig_atomic_t& interrupted_;
};

}  // namespace rollcall::real
