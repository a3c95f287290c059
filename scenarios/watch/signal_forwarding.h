#pragma once

// Signals to `rollcall watch` are meant for the job: they are forwarded to it.

#include <array>
#include <csignal>

#include <sys/types.h>

namespace rollcall::watch {

constexpr std::array<int, 6> forwarded_signals = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};

// While one exists, signals to this process are forwarded to `job`, except those from the terminal, which sends them to
// the job as well. There can be one.
class SignalForwarding {
 public:
  explicit SignalForwarding(pid_t job);
  ~SignalForwarding();
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

  // True if the job was told to end, now or while an earlier one existed: the reason for its end is known then.
  static bool told_to_end();

 private:
  std::array<struct sigaction, forwarded_signals.size()> before_{};
};

}  // namespace rollcall::watch
