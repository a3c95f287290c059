// A library for LD_PRELOAD that lets system calls fail when a test says so.
//
// ROLLCALL_FAILING_CALL=CALL:N:ERRNO:WHO:FILE lets the N-th call of CALL (from 0) fail with ERRNO, in the process that
// was started (WHO is "first") or in those that it forks ("others"). The library then creates FILE, which tells the
// test that the call failed.

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace {

struct Failure {
  char call[32] = {};
  int error = 0;
  bool of_others = false;
  char file[256] = {};
  pid_t first = 0;
  std::atomic<long>* until = nullptr;  // shared by all processes
};
Failure failure;

// Copies the part of `text` before the next colon, and advances `text` past the colon.
void take(const char*& text, char* part, std::size_t size) {
  const std::size_t length = std::strcspn(text, ":");
  std::memcpy(part, text, length < size ? length : size - 1);
  text += length + (text[length] == ':' ? 1 : 0);
}

__attribute__((constructor)) void read_failure() {
  const char* text = std::getenv("ROLLCALL_FAILING_CALL");
  if (text == nullptr) {
    return;
  }
  char number[32] = {};
  char error[32] = {};
  char who[32] = {};
  take(text, failure.call, sizeof failure.call);
  take(text, number, sizeof number);
  take(text, error, sizeof error);
  take(text, who, sizeof who);
  take(text, failure.file, sizeof failure.file);
  failure.error = std::atoi(error);
  failure.of_others = std::strcmp(who, "others") == 0;
  failure.first = ::getpid();
  // Made as a system call, because mmap is one of the functions that fail.
  void* const memory =
      reinterpret_cast<void*>(::syscall(SYS_mmap, nullptr, sizeof(std::atomic<long>), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  failure.until = new (memory) std::atomic<long>(std::atol(number));
  ::unsetenv("ROLLCALL_FAILING_CALL");  // does not apply to programs that it starts
}

bool fails(const char* call) {
  if (failure.until == nullptr || std::strcmp(call, failure.call) != 0 ||
      failure.of_others != (::getpid() != failure.first) || failure.until->fetch_sub(1) != 0) {
    return false;
  }
  const long file = ::syscall(SYS_openat, AT_FDCWD, failure.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::syscall(SYS_close, file);
  errno = failure.error;
  return true;
}

template <typename Function>
Function* real(const char* call) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, call));
}

}  // namespace

#define ROLLCALL_MAY_FAIL(result, failed, call, parameters, arguments, ...)  \
  extern "C" result call parameters __VA_ARGS__ {                            \
    return fails(#call) ? failed : real<result parameters>(#call) arguments; \
  }

ROLLCALL_MAY_FAIL(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol), noexcept)
ROLLCALL_MAY_FAIL(int, -1, socketpair, (int domain, int type, int protocol, int* ends),
                  (domain, type, protocol, ends), noexcept)
ROLLCALL_MAY_FAIL(int, -1, bind, (int socket, const sockaddr* address, socklen_t size),
                  (socket, address, size), noexcept)
ROLLCALL_MAY_FAIL(int, -1, listen, (int socket, int waiting), (socket, waiting), noexcept)
ROLLCALL_MAY_FAIL(int, -1, accept4, (int socket, sockaddr* address, socklen_t* size, int flags),
                  (socket, address, size, flags))
ROLLCALL_MAY_FAIL(int, -1, connect, (int socket, const sockaddr* address, socklen_t size),
                  (socket, address, size))
ROLLCALL_MAY_FAIL(int, -1, pipe2, (int* ends, int flags), (ends, flags), noexcept)
ROLLCALL_MAY_FAIL(pid_t, -1, fork, (), (), noexcept)
ROLLCALL_MAY_FAIL(void*, MAP_FAILED, mmap,
                  (void* at, size_t size, int may, int flags, int file, off_t offset),
                  (at, size, may, flags, file, offset), noexcept)
ROLLCALL_MAY_FAIL(ssize_t, -1, read, (int file, void* bytes, size_t size), (file, bytes, size))
ROLLCALL_MAY_FAIL(ssize_t, -1, write, (int file, const void* bytes, size_t size), (file, bytes, size))
ROLLCALL_MAY_FAIL(ssize_t, -1, send, (int socket, const void* bytes, size_t size, int flags),
                  (socket, bytes, size, flags))
ROLLCALL_MAY_FAIL(ssize_t, -1, recv, (int socket, void* bytes, size_t size, int flags),
                  (socket, bytes, size, flags))
ROLLCALL_MAY_FAIL(int, -1, poll, (pollfd * polled, nfds_t count, int timeout), (polled, count, timeout))
ROLLCALL_MAY_FAIL(char*, nullptr, mkdtemp, (char* pattern), (pattern), noexcept)
ROLLCALL_MAY_FAIL(pid_t, -1, waitpid, (pid_t child, int* status, int options), (child, status, options))
ROLLCALL_MAY_FAIL(int, -1, dup2, (int from, int to), (from, to), noexcept)

// These functions have an optional argument.
extern "C" int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  return fails("open") ? -1 : real<int(const char*, int, ...)>("open")(path, flags, mode);
}
