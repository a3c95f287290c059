#include "real/process/forked_work.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <new>
#include <system_error>

#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rollcall::real {
namespace {

// Written by the child and read by its parent: unlike a pipe, it never fills, so the parent need not read meanwhile.
Descriptor shared_memory(const char* name) {
  const int number = ::memfd_create(name, MFD_CLOEXEC);
  if (number < 0) {
    throw_errno("memfd_create");
  }
  return Descriptor(number);
}

// 0 if the process is gone.
std::int64_t resident_bytes(pid_t pid) {
  std::int64_t total = 0;
  std::int64_t resident = 0;  // in pages
  std::ifstream(fmt::format("/proc/{}/statm", pid)) >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// The last `bytes_max` bytes of the file.
std::string tail(int descriptor, std::size_t bytes_max) {
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  const std::size_t length = size > 0 ? std::min(static_cast<std::size_t>(size), bytes_max) : 0;
  std::string text(length, '\0');
  std::size_t at = 0;
  while (at < length) {
    const ssize_t count =
        ::pread(descriptor, text.data() + at, length - at, size - static_cast<off_t>(length - at));
    if (count <= 0) {
      break;
    }
    at += static_cast<std::size_t>(count);
  }
  text.resize(at);
  return text;
}

// Redirects the child's output, and makes the child the first to be killed when the machine runs out of memory.
void keep_output(const Descriptor& said) {
  ::dup2(said.number(), STDOUT_FILENO);
  ::dup2(said.number(), STDERR_FILENO);
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // best effort: without /proc nothing is lost
}

[[noreturn]] void be_child(const std::function<std::string()>& work, int result) {
  int code = 1;
  try {
    code = write_all(result, work()) ? 0 : 1;
  } catch (const std::bad_alloc&) {
    std::fputs("out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
  } catch (...) {
    std::fputs("an exception of unknown type\n", stderr);
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

ForkedWork::ForkedWork(const std::function<std::string()>& work, Output output)
    : inherited_memory_(resident_bytes(::getpid())),
      result_(shared_memory("result")),
      said_(shared_memory("said")),
      process_(
          [&] {
            if (output == Output::kept) {
              keep_output(said_);
            }
            be_child(work, result_.number());
          },
          ChildProcess::Interrupt::ignored),  // the parent handles a signal to the whole terminal
      ended_(process_.watch()) {}

std::int64_t ForkedWork::own_memory() const { return resident_bytes(process_.id()) - inherited_memory_; }

Ending ForkedWork::ending() {
  Ending ending;
  ending.elapsed = elapsed();
  const int status = process_.wait();
  if (WIFSIGNALED(status)) {
    ending.kind = Ending::Kind::killed;
    ending.number = WTERMSIG(status);
  } else if (WEXITSTATUS(status) != 0) {
    ending.kind = Ending::Kind::exited;
    ending.number = WEXITSTATUS(status);
  }
  constexpr std::size_t said_max = 4096;
  constexpr std::size_t everything = ~std::size_t{0};
  (ending.kind == Ending::Kind::returned ? ending.result : ending.said) =
      ending.kind == Ending::Kind::returned ? tail(result_.number(), everything)
                                            : tail(said_.number(), said_max);
  return ending;
}

Ending ForkedWork::kill(Ending::Kind reason) {
  process_.kill();
  Ending ended = ending();
  ended.kind = reason;
  ended.result.clear();
  return ended;
}

Ending run_forked(const std::function<std::string()>& work, Duration limit) {
  ForkedWork forked(work, ForkedWork::Output::shown);
  pollfd ended{forked.descriptor(), POLLIN, 0};
  while (::poll(&ended, 1, limit > 0 ? static_cast<int>(limit / millisecond) : -1) < 0 && errno == EINTR) {
  }
  return ended.revents != 0 ? forked.ending() : forked.kill(Ending::Kind::too_slow);
}

}  // namespace rollcall::real
