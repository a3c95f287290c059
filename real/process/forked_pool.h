#pragma once

// ForkedPool: pieces of work, each in its own process, a few at a time. Whatever happens to one (a crash,
// an endless loop, all memory taken) is one Ending and does not affect the others. Forking a small process takes
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
  Duration time = 60 * second;  // of one piece, in wall-clock time
  std::int64_t memory_bytes =
      std::int64_t{8} * 1024 * 1024 * 1024;  // of one piece, beyond what it starts with
};

class ForkedPool {
 public:
  using Work = std::function<std::string(std::size_t index)>;
  // Receives the endings in the order of the pieces, whichever ended first. Returns false if no more are wanted.
  using Receive = std::function<bool(std::size_t index, Ending ending)>;
  // Called when a piece has started or ended; `done`: how many have ended.
  using Watch = std::function<void(std::size_t newest, std::size_t done)>;

  // `interrupted` is set by a signal handler, and borrowed.
  ForkedPool(const ForkLimits& limits, const volatile std::sig_atomic_t& interrupted)
      : limits_(limits), interrupted_(interrupted) {}

  // Runs `count` pieces. Returns early if `receive` wants no more or the run is interrupted; running pieces are killed
  // then. Throws std::system_error if no more processes can be created.
  void run(std::size_t count, const Work& work, const Receive& receive, const Watch& watch = {});

 private:
  ForkLimits limits_;
  const volatile std::sig_atomic_t& interrupted_;
};

}  // namespace rollcall::real
