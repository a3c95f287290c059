// The change to a recorded script with which all ranks would finish.

#include <string>

#include "tests/catch.h"
#include "tests/count.h"
#include "tests/scripts.h"

namespace rollcall::test::record_repair_test {

TEST_CASE("a call of another size is replaced, because after the others' call nobody would come to it",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 4 -o out.json --simulate " + script("mistakes") + " short_in_group");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("let rank 3 call all_reduce on g2 of 6 x float32"));
  CHECK_THAT(outcome.out, Contains("instead of all_reduce on g2"));
  CHECK_THAT(outcome.out,
             Contains("(a run confirmed it)\n"));  // to its end: nothing follows that is not known
}

TEST_CASE("a call of another size is replaced, although nobody knows what would follow it", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 4 -o out.json --simulate " + script("mistakes") + " gathers_what_it_has");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("let rank 3 call all_gather on world of 10 x float32"));
  CHECK_THAT(outcome.out, Contains("instead of all_gather on world of 7 x float32"));
}

TEST_CASE("a compiled module has the original one, and its keys have a prefix", "[record]") {
  if (!has_torch() || recorded_torch().starts_with("1.")) {
    return;  // torch 1.x does not compile
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record -n 2 -o out.json --simulate " + script("compiled"));
  CHECK(outcome.code == 0);
  CHECK(count(outcome.err, "weight bias module._orig_mod.weight module._orig_mod.bias True\n") == 2);
}

}  // namespace rollcall::test::record_repair_test
