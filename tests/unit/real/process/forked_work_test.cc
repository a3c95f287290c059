#include "real/process/forked_work.h"

#include <csignal>
#include <string>
#include <thread>

#include "tests/catch.h"

namespace rollcall::real::forked_work_test {

TEST_CASE("a child's answer comes back whole", "[process]") {
  const std::string text(1 << 20, 'x');  // more than a pipe holds
  const Ending ending = run_forked([&] { return text; });
  CHECK(ending.result == text);
  CHECK(ending.kind == Ending::Kind::returned);
}

TEST_CASE("a child that dies says by what", "[process]") {
  const Ending ending = run_forked([]() -> std::string {
    ::raise(SIGKILL);
    return "not reached";
  });
  CHECK(ending.result.empty());
  CHECK(ending.kind == Ending::Kind::killed);
  CHECK(ending.number == SIGKILL);
}

TEST_CASE("an answer that does not come within its limit is late", "[process]") {
  const auto forever = []() -> std::string {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(60));
    }
  };
  const Ending ending = run_forked(forever, 50 * millisecond);
  CHECK(ending.kind == Ending::Kind::too_slow);
  CHECK(ending.result.empty());
}

}  // namespace rollcall::real::forked_work_test
