#pragma once

// One piece of work in its own process: it may crash, loop or take all memory, and the resources that it takes (CUDA
// does not survive a fork) do not stay in this process.

#include <cstdint>
#include <functional>
#include <string>

#include "real/process/process.h"
#include "real/process/run_clock.h"

namespace rollcall::real {

// How a piece of work ended.
struct Ending {
  enum class Kind { returned, killed, exited, too_slow, too_large };
  Kind kind = Kind::returned;
  int number = 0;      // killed: the signal; exited: the code
  std::string result;  // returned: what the work returned
  std::string said;  // otherwise: the last bytes of its standard output and standard error, if those are kept
  Duration elapsed = 0;
};

class ForkedWork {
 public:
  enum class Output { kept, shown };  // shown: on this process's standard output and standard error

  // Forks. The child does the work, leaves its result and ends without destructors. Throws std::system_error.
  ForkedWork(const std::function<std::string()>& work, Output output);

  int descriptor() const { return ended_.number(); }  // readable once the child has ended
  Duration elapsed() const { return clock_.now(); }
  // The memory that it has taken beyond what it shares with its parent, in bytes.
  std::int64_t own_memory() const;

  // Waits for the child.
  Ending ending();
  // Ends the child for this reason.
  Ending kill(Ending::Kind reason);

 private:
  std::int64_t inherited_memory_;  // bytes
  Descriptor result_;
  Descriptor said_;
  ChildProcess process_;
  Descriptor ended_;
  RunClock clock_;
};

// Does the work in its own process, which shows its output, and waits for at most `limit` of real time; 0: without a
// limit. Throws std::system_error.
Ending run_forked(const std::function<std::string()>& work, Duration limit = 0);

}  // namespace rollcall::real
