#include "real/process/process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rollcall::real {
namespace {

// In the child: undoes what the parent set up for itself.
void prepare_child(pid_t parent, ChildProcess::Interrupt interrupt) {
  for (const int signal : {SIGABRT, SIGTERM}) {
    std::signal(signal, SIG_DFL);
  }
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) {
    std::signal(SIGHUP, SIG_IGN);  // nohup means the children as well
  }
  std::signal(SIGINT, interrupt == ChildProcess::Interrupt::ends ? SIG_DFL : SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);  // as in Python: a closed connection is an error of the call
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(EXIT_FAILURE);  // the parent died before the prctl
  }
}

}  // namespace

void throw_errno(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void Descriptor::close() {
  if (number_ >= 0) {
    ::close(std::exchange(number_, -1));
  }
}

void poll_all(std::vector<pollfd>& polled, int milliseconds) {
  if (::poll(polled.data(), polled.size(), milliseconds) < 0) {
    if (errno != EINTR) {
      throw_errno("poll");
    }
    for (pollfd& each : polled) {
      each.revents = 0;
    }
  }
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

Pipe::Pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw_errno("pipe");
  }
  read = Descriptor(ends[0]);
  write = Descriptor(ends[1]);
}

PrivateFolder::PrivateFolder(const std::string& parent) {
  const std::filesystem::path place =
      parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
  path_ = (place / "rollcall-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) {
    throw_errno("mkdtemp");
  }
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;  // files that cannot be removed do no harm
  std::filesystem::remove_all(path_, ignored);
}

ChildProcess::ChildProcess(const std::function<void()>& body, Interrupt interrupt) {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);  // or the child would print the buffered output, too
  id_ = ::fork();
  if (id_ < 0) {
    throw_errno("fork");
  }
  if (id_ == 0) {
    prepare_child(parent, interrupt);
    body();
    ::_exit(EXIT_FAILURE);
  }
}

Descriptor ChildProcess::watch() const {
  // By its number, because the header of glibc 2.36 declares pidfd_open as a C++ function.
  Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, id_, 0)));
  if (!process.is_open()) {
    throw_errno("pidfd_open");
  }
  return process;
}

int ChildProcess::wait() {
  while (id_ >= 0) {
    if (::waitpid(id_, &status_, 0) == id_) {
      id_ = -1;
    } else if (errno != EINTR) {
      throw_errno("waitpid");
    }
  }
  return status_;
}

bool ChildProcess::is_busy() const {
  std::error_code gone;  // it has ended, or a thread of it has: then it is not busy
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", id_), gone)) {
    std::ifstream file(thread.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(") ");  // "12 (name) R ...": proc(5)
    if (name_end != std::string::npos && (line[name_end + 2] == 'R' || line[name_end + 2] == 'D')) {
      return true;
    }
  }
  return false;
}

void ChildProcess::kill() {
  if (id_ >= 0) {
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
  }
}

void execute(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  ::_exit(no_such_program);
}

}  // namespace rollcall::real
