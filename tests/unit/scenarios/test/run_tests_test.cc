#include "scenarios/test/run_tests.h"

#include <csignal>

#include "tests/catch.h"

namespace rollcall::scenario::run_tests_test {

TEST_CASE("a test whose process ended early says how", "[scenarios]") {
  using Kind = real::Ending::Kind;
  const real::ForkLimits limits{.time = 90 * second, .memory_bytes = 200 * 1024 * 1024};
  const auto phrase = [&](Kind kind, int number) {
    real::Ending ending;
    ending.kind = kind;
    ending.number = number;
    return ending_phrase(ending, limits);
  };
  CHECK(phrase(Kind::killed, SIGSEGV) == "crashed: Segmentation fault");
  CHECK(phrase(Kind::killed, SIGABRT) == "crashed: Aborted");
  CHECK(phrase(Kind::exited, 7) == "failed with an internal error");
  CHECK(phrase(Kind::too_slow, 0) == "took longer than 90 s");
  CHECK(phrase(Kind::too_large, 0) == "took more than 200 MiB of memory");
}

}  // namespace rollcall::scenario::run_tests_test
