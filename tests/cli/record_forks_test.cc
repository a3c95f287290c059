// Processes that a rank forks, such as the workers of a DataLoader, have copies of all that the recorder gave the rank.

#include <string>

#include "tests/catch.h"
#include "tests/scripts.h"

namespace rollcall::test {

TEST_CASE("what a process does that a rank has forked is not the rank's", "[record]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string name : {"loads_slowly", "ends", "fails", "touches"}) {
    INFO(name);
    const Shell shell;
    const Outcome outcome = shell.rollcall("record -n 4 -o out.json " + script("forks") + " " + name);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Contains("4 ranks finished, 16 calls"));
  }
}

TEST_CASE("a process that a rank has forked cannot call for it", "[record]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string name : {"calls", "asks_the_store", "waits"}) {
    INFO(name);
    const Shell shell;
    const Outcome outcome = shell.rollcall("record -n 4 -o out.json " + script("forks") + " " + name);
    INFO(outcome.out << outcome.err);
    CHECK_THAT(outcome.err,
               Contains("RuntimeError: rollcall: a process that rank 1 forked calls torch.distributed"));
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Contains("4 ranks finished, 16 calls"));
  }
}

}  // namespace rollcall::test
