// rollcall: runs the ranks of a torch.distributed program and says which one is missing from a hang.

#include <csignal>
#include <string_view>

#include <unistd.h>

#include "scenarios/cli/guarded.h"
#include "scenarios/cli/terminal/progress.h"
#include "viz/base/write_file.h"

namespace {

using rollcall::cli::ExitCode;

// Only what a signal handler may do: write and leave.
[[noreturn]] void leave(std::string_view message, ExitCode code) {
  if (::write(STDERR_FILENO, message.data(), message.size()) < 0) {
    // Nobody reads the message; the code is what counts.
  }
  ::_exit(static_cast<int>(code));
}

// Ctrl-C, a canceled job, a closed terminal: at once, and without half a file.
void on_interrupt(int) {
  rollcall::viz::remove_unfinished_file();
  rollcall::cli::wipe_progress();
  leave("rollcall: interrupted\n", ExitCode::interrupted);
}

// A failed expects() has said its piece and aborts; callers should see the code for internal errors.
void on_abort(int) {
  rollcall::viz::remove_unfinished_file();
  leave("", ExitCode::internal_error);
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(signal, on_interrupt);
  }
  std::signal(SIGABRT, on_abort);
  for (const int signal : {SIGPIPE, SIGXFSZ}) {  // a closed pipe, a limit on files (ulimit -f):
    std::signal(signal, SIG_IGN);                // then errors of the write, with a message
  }
  return static_cast<int>(rollcall::cli::guarded(argc, argv));
}
