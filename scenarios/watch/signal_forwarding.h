#pragma once

// Signals to `rollcall watch` are meant for the job: they are forwarded to it.

#include <array>
#include <csignal>

#include <sys/types.h>

namespace rollcall::watch {

constexpr std::array<int, 6> forwarded_signals = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};

// While one exists, signals to this process are forwarded to a job, except those from the terminal, which sends them to
// the job as well. A signal that arrives before the job is known waits until then. There can be one. It is created
// before the job's process, by a process with a single thread.
class SignalForwarding {
 public:
  SignalForwarding();
  ~SignalForwarding();
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

  // To be called once, when the job's process has been created.
  void forward_to(pid_t job);

  // Takes signals again, as before there was one: in the job's process, before its program starts.
  static void release();

  // True if the job was told to end, now or while an earlier one existed: the reason for its end is known then.
  static bool told_to_end();

 private:
  std::array<struct sigaction, forwarded_signals.size()> before_{};  // set with the job
};

}  // namespace rollcall::watch
