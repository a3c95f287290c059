#include "traces/logs/wrapped_lines.h"

#include <algorithm>

#include "tests/catch.h"

namespace rollcall::traces::wrapped_lines_test {
namespace {

const std::string caught =
    "[rank1]:[E ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=4, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800010 milliseconds before timing "
    "out.";

std::string wrapped_at(std::string line, std::size_t column) {
  for (std::size_t place = column; place < line.size(); place += column + 1) {
    line.insert(place, "\n");
  }
  return line;
}

}  // namespace

TEST_CASE(
    "a statement of torch's that a terminal wrapped is put together, and later lines keep their numbers",
    "[job-log]") {
  for (const std::size_t column : {60, 80, 100, 120}) {
    const std::string wrapped = wrapped_at(caught, column);
    CAPTURE(wrapped);
    const std::optional<std::string> whole = without_wraps("first\n" + wrapped + "\nnext\n");
    REQUIRE(whole);
    CHECK_THAT(*whole, StartsWith("first\n" + caught.substr(0, caught.find("ran for"))));
    CHECK_THAT(*whole, EndsWith("\nnext\n"));
    CHECK(std::ranges::count(*whole, '\n') == std::ranges::count(wrapped, '\n') + 3);
  }
}

TEST_CASE("a line that is cut is not joined to one of another process, nor to one that does not complete it",
          "[job-log]") {
  const std::string cut = caught.substr(0, 110);
  CHECK_FALSE(without_wraps(cut + "\n[rank2]: Timeout(ms)=1)\n"));
  CHECK_FALSE(without_wraps(cut + "\nEpoch 3: 70%\n"));
  CHECK_FALSE(without_wraps(cut + "\n\nTimeout(ms)=1)\n"));
  CHECK_FALSE(without_wraps(caught + "\nnext\n"));
}

}  // namespace rollcall::traces::wrapped_lines_test
