// Twelve reports, one for each class of real failures, which newcomers read first.
//
// tests/data/reports/CLASS.txt is the output of `rollcall run scenarios/real_hangs/ID.json`. After an intended change,
// rewrite them, and read them aloud:
//
//   ROLLCALL_BLESS=1 build/dev/rollcall_tests '[golden-twelve]'

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/contents.h"
#include "viz/kinds/explanations.h"
#include "viz/text/text_report.h"

namespace rollcall::test::report_golden_test {
namespace {

namespace fs = std::filesystem;

struct Pick {
  const char* cls;  // a class of the library
  const char* id;
};

constexpr Pick picks[] = {{"rank-conditional", "zero3-save-on-main-only"},
                          {"early-exit", "split-by-node-drop-last"},
                          {"crash-while-waiting", "loader-error-hidden-by-barrier"},
                          {"config-divergence", "elastic-restart-stale-id"},
                          {"device", "all-ranks-on-gpu0"},
                          {"order-crossing", "two-groups-with-hidden-gpu-sync"},
                          {"p2p", "both-send-first"},
                          {"async-lifetime", "stash-across-three-streams"},
                          {"group-creation", "new-group-inside-branch"},
                          {"shape", "all-to-all-splits-disagree"},
                          {"dtype", "numpy-bool-promotes-metric"},
                          {"other", "unseeded-shuffle-breaks-partition"}};

}  // namespace

TEST_CASE("twelve reports, one for each class of failures, fit a page and explain themselves",
          "[golden-twelve][fiber]") {
  constexpr std::size_t page_width = 100;
  const fs::path root(ROLLCALL_SOURCE_DIR);
  const char* bless = std::getenv("ROLLCALL_BLESS");
  for (const Pick& pick : picks) {
    const std::string file = std::string("scenarios/real_hangs/") + pick.id + ".json";
    INFO("rollcall run " << file << "; if the change is meant: ROLLCALL_BLESS=1");
    const Report report = scenario::run(scenario::parse_scenario(contents(root / file), file));
    const std::string text = viz::text_report(report, {});
    const fs::path expected = root / "tests" / "data" / "reports" / (std::string(pick.cls) + ".txt");
    if (bless != nullptr && std::string(bless) == "1") {
      std::ofstream(expected, std::ios::binary) << text;
    }
    CHECK(text == contents(expected));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      CHECK(line.size() <= page_width);
    }
    const Finding* finding = finding_of(report.verdict);
    REQUIRE(finding != nullptr);
    CHECK(viz::find_explanation(to_string(finding->kind)) != nullptr);  // `rollcall explain` knows it
    CHECK_FALSE(finding->cause.empty());
    CHECK_FALSE(finding->advice.empty());
    CHECK_FALSE(finding->on_backend.empty());
  }
}

}  // namespace rollcall::test::report_golden_test
