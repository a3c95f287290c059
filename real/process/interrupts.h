#pragma once

// Holds back SIGINT, SIGTERM and SIGHUP while something has to be cleaned up before they may end this process.

#include <array>
#include <csignal>

namespace rollcall::real {

// While one lives, these signals are only recorded. If another one comes more than a second later, it has its usual
// effect. One object at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The signal that has arrived; 0: none.
  static int pending();
  // The reader at the other end of this pipe sees it closed when a signal arrives, or at once if one has. The number
  // stays that of an open descriptor.
  void cut_on_signal(int pipe_end);

 private:
  std::array<struct sigaction, 3> before_{};
};

// Calls `body` while the signals are held back. Then the one that has come has its usual effect.
template <typename Body>
void hold_interrupts(const Body& body) {
  int signal = 0;
  {
    const Interrupts interrupts;
    body();
    signal = Interrupts::pending();
  }
  if (signal != 0) {
    ::raise(signal);
  }
}

}  // namespace rollcall::real
