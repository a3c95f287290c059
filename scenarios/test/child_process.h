#pragma once

// One piece of work in a process of its own.

#include <functional>
#include <string>

#include <sys/types.h>

#include "real/rank/process.h"
#include "scenarios/test/forked_pool.h"
#include "scenarios/test/stopwatch.h"

namespace rollcall::scenario {

class ChildProcess {
 public:
  // Forks. The child does the work, leaves its result and ends. Throws std::system_error.
  explicit ChildProcess(const std::function<std::string()>& work);
  ChildProcess(ChildProcess&&) = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Kills the child if nobody has waited for it.
  ~ChildProcess();

  int descriptor() const { return process_.number(); }  // readable when the child has ended
  Duration elapsed() const { return watch_.elapsed(); }
  // What it has taken beyond what it shares with its parent, in bytes.
  std::int64_t own_memory() const;

  // Waits for the child, which has ended.
  Ending ending();
  // Ends the child for this reason.
  Ending kill(Ending::Kind reason);

 private:
  int wait();

  pid_t pid_ = -1;
  std::int64_t inherited_memory_ = 0;  // bytes
  real::Descriptor process_;
  real::Descriptor result_;
  real::Descriptor said_;
  Stopwatch watch_;
};

}  // namespace rollcall::scenario
