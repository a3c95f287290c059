// rollcall: runs the ranks of a torch.distributed program and says which one is missing from a hang.

#include <cerrno>
#include <csignal>
#include <string_view>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/terminal/progress.h"
#include "viz/base/write_file.h"

namespace {

using rollcall::cli::ExitCode;

// Does only what a signal handler may do: write and exit.
[[noreturn]] void leave(std::string_view message, ExitCode code) {
  if (::write(STDERR_FILENO, message.data(), message.size()) < 0) {
    // No one reads the message; the exit code is what counts.
  }
  ::_exit(static_cast<int>(code));
}

// A caller that closes a standard stream does not want its data, but its number must not be reused for a pipe or a log.
// The stream that replaces it cannot be used either, so that errors stay errors.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF) {
      // open() returns the lowest free number, and those below are taken.
      const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
      if (opened != stream) {
        ::_exit(static_cast<int>(ExitCode::internal_error));  // there is nowhere to report it
      }
    }
  }
}

// Handles Ctrl-C, a canceled job, or a closed terminal: exits at once, without leaving half a file.
void on_interrupt(int) {
  rollcall::viz::remove_unfinished_file();
  rollcall::cli::wipe_progress();
  leave("rollcall: interrupted\n", ExitCode::interrupted);
}

// A failed expects() has printed its message and aborts; callers should see the code for internal errors.
void on_abort(int) {
  rollcall::viz::remove_unfinished_file();
  leave("", ExitCode::internal_error);
}

// A search runs a program hundreds of times, and each run needs the tensors of the one before. By default, glibc gives
// such memory back to the kernel after each run, and every page that comes back costs a fault and is cleared: of a
// search with tensors of 640 KB, that was 95 % of the time.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int trimmed_above = 1 << 30;  // bytes
  constexpr int mapped_above = 32 << 20;
  ::mallopt(M_TRIM_THRESHOLD, trimmed_above);
  ::mallopt(M_MMAP_THRESHOLD, mapped_above);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_streams();
  keep_freed_memory();
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, on_interrupt);
  }
  if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) {
    std::signal(SIGHUP, SIG_IGN);  // nohup
  }
  std::signal(SIGABRT, on_abort);
  for (const int signal : {SIGPIPE, SIGXFSZ}) {  // a closed pipe, a limit on files (ulimit -f):
    std::signal(signal, SIG_IGN);                // then errors of the write, with a message
  }
  return static_cast<int>(rollcall::cli::guarded(argc, argv));
}
