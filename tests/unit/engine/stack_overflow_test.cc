// A rank whose local variables are larger than its stack.

#include <array>
#include <csignal>
#include <cstring>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "sim/fibers/overflow_watch.h"
#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::stack_overflow_test {
namespace {

// Writes to the whole of a local array of `kib` KiB.
template <std::size_t kib>
[[gnu::noinline]] void use_stack() {
  std::array<char, kib * 1024> local;
  std::memset(local.data(), 1, local.size());
  volatile const char* seen = local.data();  // so that the array is not optimized away
  static_cast<void>(*seen);
}

template <std::size_t kib>
Report run_with(std::int64_t stack_bytes) {
  Options options = gloo(2);
  options.stack_bytes = stack_bytes;
  return run(options, [](Rank rank) {
    if (rank == 1) {
      use_stack<kib>();
    }
    barrier();
  });
}

struct Ended {
  int status = 0;
  std::string errors;
};

// Runs `work` in a process of its own.
template <typename Work>
Ended apart(const Work& work) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    work();
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  std::array<char, 1024> text{};
  for (ssize_t bytes = 0; (bytes = read(ends[0], text.data(), text.size())) > 0;) {
    ended.errors.append(text.data(), static_cast<std::size_t>(bytes));
  }
  close(ends[0]);
  REQUIRE(waitpid(child, &ended.status, 0) == child);
  return ended;
}

}  // namespace

TEST_CASE("a local array of 72 kB fits the usual stack", "[stack_overflow][fiber]") {
  CHECK(verdict_word(run_with<72>(0).verdict) == "ok");
}

TEST_CASE("a rank that runs out of stack ends the process with a message", "[stack_overflow][fiber]") {
  const Ended ended = apart([] { run_with<700>(0); });
  REQUIRE(WIFEXITED(ended.status));
  CHECK(WEXITSTATUS(ended.status) == OverflowWatch::exit_code);
  CHECK_THAT(ended.errors, StartsWith("rollcall: rank 1 has run out of stack: it has 256 KiB.\n"));
  CHECK_THAT(ended.errors, Contains("sim::Options::stack_bytes"));
}

TEST_CASE("a stack is as large as asked for", "[stack_overflow][fiber]") {
  CHECK(verdict_word(run_with<700>(1 << 20).verdict) == "ok");
  const Ended ended = apart([] { run_with<72>(64 * 1024); });
  REQUIRE(WIFEXITED(ended.status));
  CHECK_THAT(ended.errors, StartsWith("rollcall: rank 1 has run out of stack: it has 64 KiB.\n"));
}

TEST_CASE("another fault stays the fault that it is", "[stack_overflow][fiber]") {
  const Ended ended = apart([] {
    run_with<1>(0);
    signal(SIGABRT, SIG_DFL);
    run(gloo(1), [](Rank) { *static_cast<volatile int*>(nullptr) = 1; });
  });
  CHECK((WIFSIGNALED(ended.status) || WEXITSTATUS(ended.status) != OverflowWatch::exit_code));
  CHECK(ended.errors.find("run out of stack") == std::string::npos);
}

}  // namespace rollcall::sim::stack_overflow_test
