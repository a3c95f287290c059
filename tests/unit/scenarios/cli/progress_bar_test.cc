#include "scenarios/cli/progress_bar.h"

#include <catch2/catch.hpp>

namespace rollcall::cli {

TEST_CASE("a progress line fills from left to right", "[cli]") {
  CHECK(progress_line("reading", 0, 8) == "reading  [..............................]  0 of 8");
  CHECK(progress_line("reading", 4, 8) == "reading  [###############...............]  4 of 8");
  CHECK(progress_line("reading", 8, 8) == "reading  [##############################]  8 of 8");
  CHECK(progress_line("reading", 0, 0) == "reading  [..............................]  0 of 0");
}

}  // namespace rollcall::cli
