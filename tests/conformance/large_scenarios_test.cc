// The large jobs of scenarios/large, which are too large to be examples.

#include <algorithm>
#include <filesystem>

#include "scenarios/format/expectation.h"
#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"

namespace rollcall::scenario::large_scenarios_test {
namespace {

std::vector<std::string> large_files() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(ROLLCALL_SOURCE_DIR) / "scenarios/large")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("large jobs are sound scenarios", "[scenarios]") {
  for (const std::string& file : large_files()) {
    INFO(file);
    CHECK(load_scenario(file).options.world_size >= 2048);
  }
}

// This takes minutes in a build without optimization, so it runs only by its tag.
TEST_CASE("large jobs come out as they say", "[.large][fiber]") {
  for (const std::string& file : large_files()) {
    INFO(file);
    const Scenario scenario = load_scenario(file);
    CHECK(unmet(scenario.expect, run(scenario, {})) == std::vector<std::string>{});
  }
}

}  // namespace rollcall::scenario::large_scenarios_test
