// What a script does with its host while it is recorded: processes that it forks, which have copies of all that the
// recorder gave the rank, signals, and locks.

#include <string>

#include "tests/catch.h"
#include "tests/scripts.h"

namespace rollcall::test::record_host_test {
namespace {

// Records the script, whose ranks all finish. Returns what it printed.
std::string printed_by(const std::string& name) {
  const Shell shell;
  const Outcome outcome = shell.rollcall("record -n 4 -o out.json " + script("forks") + " " + name);
  INFO(name << '\n' << outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("4 ranks finished, 16 calls"));
  return outcome.err;
}

}  // namespace

TEST_CASE("what a process does that a rank has forked is not the rank's", "[record]") {
  if (has_torch()) {
    for (const std::string name : {"loads_slowly", "ends", "fails", "touches"}) {
      printed_by(name);
    }
  }
}

TEST_CASE("a process that a rank has forked cannot call for it", "[record]") {
  if (has_torch()) {
    for (const std::string name : {"calls", "asks_the_store", "waits"}) {
      CHECK_THAT(printed_by(name),
                 Contains("RuntimeError: rollcall: a process that rank 1 forked calls torch.distributed"));
    }
  }
}

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

TEST_CASE("ranks that wait for a lock do not hold up the rank that has it", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 3 --simulate --patience 60s -o out.json " + script("locks"));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("3 ranks finished, 14 calls"));
}

}  // namespace rollcall::test::record_host_test
