#pragma once

// SIGINT, SIGTERM and SIGHUP, for as long as something has to be put away before they may end this process.

#include <array>
#include <csignal>

namespace rollcall::real {

// While one lives, such a signal is only noted. If another comes more than a second later, it gets what it would have
// without us. One object at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The signal that has come; 0: none.
  static int pending();
  // Whoever reads the other end of this pipe sees it closed when a signal comes, or at once if one has. The number
  // stays that of an open descriptor.
  void cut_on_signal(int pipe_end);

 private:
  std::array<struct sigaction, 3> before_{};
};

}  // namespace rollcall::real
