#include "real/rank/child_answer.h"
#include "tests/catch.h"

#include <csignal>
#include <thread>

#include <sys/wait.h>

namespace rollcall::real {

TEST_CASE("a child's answer comes back whole", "[real]") {
  const std::string text(1 << 20, 'x');  // more than a pipe holds
  const ChildAnswer answer = ask_child([&] { return text; });
  CHECK(answer.text == text);
  CHECK(answer.status == 0);
  CHECK_FALSE(answer.is_late);
}

TEST_CASE("a child that dies says by what", "[real]") {
  const ChildAnswer answer = ask_child([]() -> std::string {
    ::raise(SIGKILL);
    return "not reached";
  });
  CHECK(answer.text.empty());
  REQUIRE(WIFSIGNALED(answer.status));
  CHECK(WTERMSIG(answer.status) == SIGKILL);
}

TEST_CASE("an answer that does not come within its limit is late", "[real]") {
  const auto forever = []() -> std::string {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(60));
    }
  };
  const ChildAnswer answer = ask_child(forever, 50 * millisecond);
  CHECK(answer.is_late);
  CHECK(answer.text.empty());
}

}  // namespace rollcall::real
