#include "viz/rows/output_groups.h"
#include "tests/catch.h"

namespace rollcall::viz::output_groups_test {

namespace {

// "0-2: text" per group.
std::vector<std::string> grouped(const std::vector<OutputLine>& output) {
  std::vector<std::string> lines;
  for (const OutputGroup& group : group_output(output)) {
    lines.push_back(to_string(group.ranks) + ": " + group.text);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("equal lines of different ranks become one") {
  CHECK(grouped({{0, 5, false, "10"}, {1, 5, false, "11"}, {2, 5, false, "11"}, {3, 5, false, "11"}}) ==
        Lines{"0: 10", "1-3: 11"});
}

TEST_CASE("lines keep the order of time, and of the program where times are equal") {
  CHECK(grouped({{0, 5, false, "b"}, {0, 5, false, "a"}, {1, 5, false, "b"}, {1, 5, false, "a"}}) ==
        Lines{"0-1: b", "0-1: a"});
  CHECK(grouped({{0, 9, false, "late"}, {1, 2, false, "early"}, {1, 9, false, "late"}}) ==
        Lines{"1: early", "0-1: late"});
}

TEST_CASE("a line that one rank repeats is not lost") {
  CHECK(grouped({{0, 1, false, "step"}, {0, 2, false, "step"}, {1, 1, false, "step"}}) ==
        Lines{"0-1: step", "0: step"});
}

TEST_CASE("a warning does not fold with a printed line of the same text") {
  CHECK(group_output({{0, 1, false, "skew"}, {1, 1, true, "skew"}}).size() == 2);
}

TEST_CASE("no output has no groups") { CHECK(group_output({}).empty()); }

}  // namespace rollcall::viz::output_groups_test
