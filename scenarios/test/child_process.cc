#include "scenarios/test/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rollcall::scenario {
namespace {

// Written by the child and read by its parent: unlike a pipe it never fills, and nobody has to read along.
real::Descriptor shared_memory(const char* name) {
  const int number = ::memfd_create(name, MFD_CLOEXEC);
  if (number < 0) {
    real::throw_errno("memfd_create");
  }
  return real::Descriptor(number);
}

// By its number, since the header of glibc 2.36 declares pidfd_open as a C++ function.
int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

// 0 when the process is gone.
std::int64_t resident_bytes(pid_t pid) {
  std::int64_t total = 0;
  std::int64_t resident = 0;  // in pages
  std::ifstream(fmt::format("/proc/{}/statm", pid)) >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

bool write_all(int descriptor, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    at += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

// The last `most` bytes of the file.
std::string tail(int descriptor, std::size_t most) {
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  const std::size_t length = size > 0 ? std::min(static_cast<std::size_t>(size), most) : 0;
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

// A signal to the whole terminal is the parent's to answer; a parent that is gone wants no result; and when the machine
// runs out of memory, the child is the one to go.
void prepare_child(pid_t parent, int said) {
  std::signal(SIGINT, SIG_IGN);
  for (const int signal : {SIGABRT, SIGHUP, SIGTERM}) {
    std::signal(signal, SIG_DFL);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(1);
  }
  ::dup2(said, STDOUT_FILENO);
  ::dup2(said, STDERR_FILENO);
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // a wish: without /proc nothing is lost
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

ChildProcess::ChildProcess(const std::function<std::string()>& work)
    : result_(shared_memory("result")), said_(shared_memory("said")) {
  const pid_t parent = ::getpid();
  inherited_memory_ = resident_bytes(parent);
  std::fflush(nullptr);  // or what waits to be printed here would be printed there, too
  pid_ = ::fork();
  if (pid_ < 0) {
    real::throw_errno("fork");
  }
  if (pid_ == 0) {
    prepare_child(parent, said_.number());
    be_child(work, result_.number());
  }
  process_ = real::Descriptor(open_process(pid_));
  if (process_.number() < 0) {
    const int error = errno;
    ::kill(pid_, SIGKILL);
    wait();
    errno = error;
    real::throw_errno("pidfd_open");
  }
}

ChildProcess::~ChildProcess() {
  if (process_.number() >= 0 && pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
}

std::int64_t ChildProcess::own_memory() const { return resident_bytes(pid_) - inherited_memory_; }

int ChildProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

Ending ChildProcess::ending() {
  Ending ending;
  ending.elapsed = elapsed();
  const int status = wait();
  if (WIFSIGNALED(status)) {
    ending.kind = Ending::Kind::killed;
    ending.number = WTERMSIG(status);
  } else if (WEXITSTATUS(status) != 0) {
    ending.kind = Ending::Kind::exited;
    ending.number = WEXITSTATUS(status);
  }
  constexpr std::size_t most_said = 4096;
  constexpr std::size_t everything = ~std::size_t{0};
  (ending.kind == Ending::Kind::returned ? ending.result : ending.said) =
      ending.kind == Ending::Kind::returned ? tail(result_.number(), everything)
                                            : tail(said_.number(), most_said);
  return ending;
}

Ending ChildProcess::kill(Ending::Kind reason) {
  ::kill(pid_, SIGKILL);
  Ending ended = ending();
  ended.kind = reason;
  ended.result.clear();
  return ended;
}

}  // namespace rollcall::scenario
