// rollcall: runs the ranks of a torch.distributed program and says which one is missing from a hang.

#include <csignal>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/progress.h"
#include "viz/write_file.h"

namespace {

using rollcall::cli::ExitCode;

// Only what a signal handler may do: write and leave.
[[noreturn]] void leave(std::string_view message, ExitCode code) {
  if (::write(STDERR_FILENO, message.data(), message.size()) < 0) {
    // Nobody reads the message; the code is what counts.
  }
  ::_exit(static_cast<int>(code));
}

// Ctrl-C, a cancelled job, a closed terminal: at once, and without half a file.
void on_interrupt(int) {
  rollcall::viz::remove_unfinished_file();
  rollcall::cli::wipe_progress();
  leave("rollcall: interrupted\n", ExitCode::interrupted);
}

// A failed expects() has said its piece and aborts; callers should see the code for internal errors.
void on_abort(int) { leave("", ExitCode::internal_error); }

ExitCode fail(ExitCode code, std::string_view what, std::string_view message) {
  rollcall::cli::remark(fmt::format("rollcall: {}: {}", what, message));
  return code;
}

ExitCode run(int argc, const char* const* argv) {
  const auto parsed = rollcall::cli::parse(argc, argv);
  if (const auto* code = std::get_if<ExitCode>(&parsed)) {
    return *code;
  }
  const auto& line = std::get<rollcall::cli::CommandLine>(parsed);
  return line.execute(line);
}

ExitCode guarded(int argc, const char* const* argv) {
  try {
    return run(argc, argv);
  } catch (const rollcall::cli::UsageError& error) {
    return fail(ExitCode::invalid, "error", error.what());
  } catch (const rollcall::viz::OutputError& error) {
    return fail(ExitCode::invalid, "error", error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::internal_error, "error",
                "out of memory; smaller inputs, fewer ranks or fewer jobs at a time (-j) need less");
  } catch (const std::system_error&
               error) {  // no thread, no process, no pipe: the machine's limits, not our fault
    return fail(ExitCode::internal_error, "error",
                fmt::format("the system refuses: {}; see `ulimit -a` for its limits", error.what()));
  } catch (const std::exception& error) {
    return fail(ExitCode::internal_error, "internal error", error.what());
  } catch (...) {
    return fail(ExitCode::internal_error, "internal error", "an exception of unknown type");
  }
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
  return static_cast<int>(guarded(argc, argv));
}
