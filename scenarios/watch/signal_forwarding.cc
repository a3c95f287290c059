#include "scenarios/watch/signal_forwarding.h"

#include <cerrno>

#include "sim/base/expects.h"

namespace rollcall::watch {

namespace {

// A signal handler sees nothing else.
pid_t forwarded_to = -1;
volatile std::sig_atomic_t was_told_to_end = 0;

sigset_t mask_before;  // the job's process, which is a copy of this one, wants it back

void forward(int signal, siginfo_t* info, void*) {
  was_told_to_end = signal != SIGUSR1 && signal != SIGUSR2 ? 1 : was_told_to_end;
  if (info->si_code <= 0 && forwarded_to > 0) {
    const int before = errno;
    ::kill(forwarded_to, signal);
    errno = before;
  }
}

}  // namespace

SignalForwarding::SignalForwarding() {
  expects(forwarded_to < 0, "signals are forwarded to one job");
  was_told_to_end = 0;
  sigset_t held_back;
  sigemptyset(&held_back);
  for (const int signal : forwarded_signals) {
    sigaddset(&held_back, signal);
  }
  ::sigprocmask(SIG_BLOCK, &held_back, &mask_before);
}

void SignalForwarding::forward_to(pid_t job) {
  expects(job > 0 && forwarded_to < 0, "signals are forwarded to one job");
  forwarded_to = job;
  struct sigaction action = {};
  action.sa_sigaction = forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (std::size_t i = 0; i < forwarded_signals.size(); ++i) {
    ::sigaction(forwarded_signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) {  // nohup: the job ignores it, too
      ::sigaction(forwarded_signals[i], &action, nullptr);
    }
  }
  release();
}

void SignalForwarding::release() { ::sigprocmask(SIG_SETMASK, &mask_before, nullptr); }

SignalForwarding::~SignalForwarding() {
  if (forwarded_to > 0) {
    for (std::size_t i = 0; i < forwarded_signals.size(); ++i) {
      ::sigaction(forwarded_signals[i], &before_[i], nullptr);
    }
    forwarded_to = -1;
  } else {
    release();  // the job could not be created
  }
}

bool SignalForwarding::told_to_end() { return was_told_to_end != 0; }

}  // namespace rollcall::watch
