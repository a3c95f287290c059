// Signals that a script handles while it is recorded.

#include "tests/catch.h"
#include "tests/scripts.h"

namespace rollcall::test {

TEST_CASE("a handler of a signal runs when the call that the rank waits in is over", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record -n 4 -o out.json " + script("alarms"));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("[rank 0] [64.0, 64.0] 3 True\n"));
  CHECK_THAT(outcome.err, Contains("[rank 2] [64.0, 64.0] 0 True\n"));
}

}  // namespace rollcall::test
