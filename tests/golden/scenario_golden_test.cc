// Every shipped scenario and the exact report it must give.
//
// scenarios/NAME.expected is what `rollcall run scenarios/NAME.json` prints from the repository's root,
// byte for byte. After a change that is meant, rewrite them and read the difference:
//
//   ROLLCALL_BLESS=1 build/dev/rollcall_tests '[golden-report]'
//   git diff scenarios/

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scenarios/run/runner.h"
#include "scenarios/scenario.h"
#include "tests/contents.h"
#include "viz/text_report.h"

namespace rollcall::test {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(ROLLCALL_SOURCE_DIR) / "scenarios";

// The names, without `ending`, of the files of the folder that have it.
std::vector<std::string> names_with(const std::string& ending) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending) && !name.ends_with(".schema.json")) {
      names.push_back(name.substr(0, name.size() - ending.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_of(const std::string& name) { return contents(folder / (name + ".json")); }

// As if given on a command line in the repository's root, wherever the tests run.
Report run_shipped(const std::string& name) {
  return scenario::run(scenario::parse_scenario(text_of(name), "scenarios/" + name + ".json"));
}

bool wants_new_expectations() {
  const char* bless = std::getenv("ROLLCALL_BLESS");
  return bless != nullptr && std::string(bless) == "1";
}

}  // namespace

TEST_CASE("every shipped scenario prints the report that stands beside it", "[golden-report][fiber]") {
  for (const std::string& name : names_with(".json")) {
    INFO("rollcall run scenarios/" << name << ".json; if the change is meant: ROLLCALL_BLESS=1");
    const std::string report = viz::text_report(run_shipped(name), {});
    const fs::path expected = folder / (name + ".expected");
    if (wants_new_expectations()) {
      std::ofstream(expected, std::ios::binary) << report;
    }
    CHECK(report == contents(expected));
  }
}

TEST_CASE("every scenario has its report, and every report its scenario", "[golden-report]") {
  const std::vector<std::string> scenarios = names_with(".json");
  CHECK(scenarios.size() >= 20);
  CHECK(names_with(".expected") == scenarios);
}

TEST_CASE("every shipped scenario comes out as it says itself", "[golden-report][fiber]") {
  for (const std::string& name : names_with(".json")) {
    INFO("scenarios/" << name << ".json");
    CHECK(run_shipped(name).unmet == std::vector<std::string>{});
  }
}

TEST_CASE("every shipped scenario begins with a comment and ends with what it expects", "[golden-report]") {
  for (const std::string& name : names_with(".json")) {
    INFO("scenarios/" << name << ".json");
    const std::string text = text_of(name);
    CHECK(text.starts_with("{\n  // "));
    const std::size_t expect = text.rfind("\n  \"expect\": {");  // a key of the scenario itself
    REQUIRE(expect != std::string::npos);
    CHECK(text.find("\"verdict\": ", expect) != std::string::npos);
  }
}

}  // namespace rollcall::test
