// Every shipped scenario and the exact report it must give.
//
// FILE.expected is the output of `rollcall run FILE.json` in the repository's root, byte for byte. After an intended
// change, rewrite the files and read the difference:
//
//   ROLLCALL_BLESS=1 build/dev/rollcall_tests '[golden-report]'
//   git diff scenarios/

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/shipped_scenarios.h"
#include "viz/text/text_report.h"

namespace rollcall::test::scenario_golden_test {
namespace {

namespace fs = std::filesystem;

const fs::path root = ROLLCALL_SOURCE_DIR;

fs::path report_of(const fs::path& scenario) { return fs::path(scenario).replace_extension(".expected"); }

// Runs the file as a command line in the repository's root would, wherever the tests run.
Report run_shipped(const fs::path& file) {
  return scenario::run(
      scenario::parse_scenario(contents(file), file.lexically_relative(root).generic_string()));
}

bool wants_new_expectations() {
  const char* bless = std::getenv("ROLLCALL_BLESS");
  return bless != nullptr && std::string(bless) == "1";
}

}  // namespace

TEST_CASE("every shipped scenario prints the report that stands beside it", "[golden-report][fiber]") {
  for (const fs::path& file : shipped_examples()) {
    INFO("rollcall run " << file << "; if the change is meant: ROLLCALL_BLESS=1");
    const std::string report = viz::text_report(run_shipped(file), {});
    const fs::path expected = report_of(file);
    if (wants_new_expectations()) {
      std::ofstream(expected, std::ios::binary) << report;
    }
    CHECK(report == contents(expected));
  }
}

TEST_CASE("every scenario has its report, and every report its scenario", "[golden-report]") {
  CHECK(shipped_examples().size() >= 20);
  std::vector<fs::path> scenarios;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "scenarios")) {
    if (entry.path().extension() == ".expected") {
      scenarios.push_back(fs::path(entry.path()).replace_extension(".json"));
    }
  }
  std::ranges::sort(scenarios);
  CHECK(scenarios == shipped_examples());
}

TEST_CASE("every shipped scenario comes out as it says itself", "[golden-report][fiber]") {
  for (const fs::path& file : shipped_examples()) {
    INFO(file);
    CHECK(run_shipped(file).unmet == std::vector<std::string>{});
  }
}

TEST_CASE("every shipped scenario begins with a comment and ends with what it expects", "[golden-report]") {
  for (const fs::path& file : shipped_examples()) {
    INFO(file);
    const std::string text = contents(file);
    CHECK(text.starts_with("{\n  // "));
    const std::size_t expect = text.rfind("\n  \"expect\": {");  // a key of the scenario itself
    REQUIRE(expect != std::string::npos);
    CHECK(text.find("\"verdict\": ", expect) != std::string::npos);
  }
}

}  // namespace rollcall::test::scenario_golden_test
