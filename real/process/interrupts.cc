#include "real/process/interrupts.h"

#include <atomic>
#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#include "real/process/process.h"
#include "sim/base/expects.h"

namespace rollcall::real {
namespace {

constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGHUP};

// The state that the handler uses.
volatile std::sig_atomic_t noted = 0;
std::atomic<std::time_t> noted_at{0};
std::atomic<int> cut{-1};
std::atomic<int> null{-1};
std::array<struct sigaction, 3>* before = nullptr;  // null: no Interrupts object lives

void cut_now() {
  const int pipe_end = cut.exchange(-1);
  if (pipe_end >= 0) {
    ::dup2(null.load(), pipe_end);
  }
}

// A launcher or a terminal may deliver one signal in several ways, so a second one soon after is the same.
constexpr std::time_t one_signal_s = 1;

void note(int signal) {
  const int error = errno;
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (noted == 0) {
    noted = signal;
    noted_at = now.tv_sec;
    cut_now();
  } else if (now.tv_sec - noted_at > one_signal_s) {  // a second request: the user is in a hurry
    for (std::size_t i = 0; i < signals.size(); ++i) {
      ::sigaction(signals[i], &(*before)[i], nullptr);
    }
    ::raise(signal);  // delivered when this handler has returned
  }
  errno = error;
}

}  // namespace

Interrupts::Interrupts() {
  expects(before == nullptr, "one object waits for signals at a time");
  null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) {
    throw_errno("/dev/null");
  }
  noted = 0;
  before = &before_;
  struct sigaction action = {};
  action.sa_handler = note;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], nullptr, &before_[i]);
  }
  for (std::size_t i = 0; i < signals.size(); ++i) {
    if (signals[i] != SIGHUP || before_[i].sa_handler != SIG_IGN) {  // nohup
      ::sigaction(signals[i], &action, nullptr);
    }
  }
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], &before_[i], nullptr);
  }
  cut = -1;
  ::close(null);
  before = nullptr;
}

int Interrupts::pending() { return noted; }

void Interrupts::cut_on_signal(int pipe_end) {
  cut = pipe_end;
  if (noted != 0) {
    cut_now();
  }
}

}  // namespace rollcall::real
