#include "scenarios/cli/terminal/progress.h"

#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::cli::progress_test {

TEST_CASE("a progress bar fills from left to right", "[cli]") {
  CHECK(bar_text("reading", 0, 8) == "reading  [..............................]  0 of 8");
  CHECK(bar_text("reading", 4, 8) == "reading  [###############...............]  4 of 8");
  CHECK(bar_text("reading", 8, 8) == "reading  [##############################]  8 of 8");
  CHECK(bar_text("reading", 0, 0) == "reading  [..............................]  0 of 0");
}

TEST_CASE("the progress of a run is its calls, the ranks that are done and the time they have come to",
          "[cli][fiber]") {
  const sim::Progress progress{.ops = 1'200'000, .ended = 5, .simulated_time = 1'250 * millisecond};
  CHECK(run_text("running a.json", progress, 8) ==
        "running a.json: 1200000 calls, 5 of 8 ranks done, 1.25 s simulated");
}

}  // namespace rollcall::cli::progress_test
