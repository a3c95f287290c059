#include "tests/stand_in/rules.h"

#include <atomic>
#include <cstdlib>

#include <unistd.h>

namespace rollcall::stand_in {
namespace {

thread_local bool in_host_function = false;
std::atomic<pid_t> first_process = 0;

}  // namespace

// Uses write(), because the caller may be a signal handler.
void break_off(const std::string& rule) {
  const std::string line = "stand-in: " + rule + "\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) {
    std::abort();  // nobody is listening
  }
  std::abort();
}

void enter() {
  require(!in_host_function, "a host function on a stream called CUDA or NCCL");
  pid_t nobody = 0;
  const pid_t self = ::getpid();
  require(first_process.compare_exchange_strong(nobody, self) || nobody == self,
          "a process that was forked off one that had used CUDA used it again");
}

HostFunction::HostFunction() { in_host_function = true; }
HostFunction::~HostFunction() { in_host_function = false; }

}  // namespace rollcall::stand_in
