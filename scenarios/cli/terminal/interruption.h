#pragma once

// While an object exists, the first Ctrl-C asks for an early end with the results so far; the second ends the
// program at
// once.

#include <csignal>

namespace rollcall::cli {

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Not 0 after a Ctrl-C.
  const volatile std::sig_atomic_t& flag() const;
};

}  // namespace rollcall::cli
