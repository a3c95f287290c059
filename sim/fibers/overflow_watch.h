#pragma once

// OverflowWatch: a rank that runs out of stack ends the process with a message instead of a signal. It serves the
// thread that created it; other faults go to the previous handler.

#include <cstddef>
#include <memory>

#include "sim/fibers/stack_arena.h"

namespace rollcall::sim {

class OverflowWatch {
 public:
  static constexpr int exit_code = 4;  // as for other input that cannot be run

  OverflowWatch();
  ~OverflowWatch();
  OverflowWatch(const OverflowWatch&) = delete;
  OverflowWatch& operator=(const OverflowWatch&) = delete;

  // Sets the stacks that ranks use from now on. Borrowed.
  void look_at(const StackArena& arena);

 private:
  std::unique_ptr<std::byte[]> handlers_stack_;  // the handler cannot run on the stack that overflowed
};

}  // namespace rollcall::sim
