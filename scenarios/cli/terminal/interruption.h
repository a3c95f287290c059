#pragma once

// While one lives, the first Ctrl-C asks for an end with what there is; the second ends the program at once.

#include <csignal>

namespace rollcall::cli {

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Not 0: somebody has asked.
  const volatile std::sig_atomic_t& flag() const;
};

}  // namespace rollcall::cli
