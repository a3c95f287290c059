// Small programs, each with one mistake, and also without it: calls or parameters that do not match, wrong orders,
// requests, and message races. The classes are those of the MPI Bugs Initiative, as far as torch has them; the programs
// are our own. Every schedule of each program is run.

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/run/explore_scenario.h"
#include "tests/catch.h"

namespace rollcall::scenario::program_classes_test {
namespace {

using json = nlohmann::json;

json programs() { return json::parse(std::ifstream(ROLLCALL_SOURCE_DIR "/tests/data/program_classes.json")); }

Report explored(const json& program) {
  const Scenario scenario = parse_scenario(program.at("scenario").dump(), "program.json");
  return explore(scenario, {});
}

std::string ending(std::string_view verdict, FindingKind kind) {
  return kind == FindingKind::ok ? "ok" : fmt::format("{} {}", verdict, to_string(kind));
}

// Returns the endings of all schedules, such as "ok" or "deadlock unmatched_recv". The report's own kind may be more
// specific.
std::set<std::string> endings_of(const Report& report) {
  std::set<std::string> endings{ending(verdict_word(report.verdict), kind_of(report.verdict))};
  REQUIRE(report.search);
  for (const Outcome& outcome : report.search->outcomes) {
    endings.insert(ending(outcome.verdict, outcome.kind));
  }
  return endings;
}

}  // namespace

TEST_CASE("of every class of mistakes each program is found, and its correct twin raises no alarm",
          "[explore][fiber]") {
  for (const json& program : programs()) {
    INFO(program.at("scenario").at("name").get<std::string>());
    const Report report = explored(program);
    const std::set<std::string> endings = endings_of(report);
    INFO(fmt::format("{}", fmt::join(endings, ", ")));
    const bool is_wrong = program.at("is_wrong").get<bool>();
    CHECK((report.exhaustive || is_wrong));  // a found mistake needs no proof that there is no other
    const bool is_found = std::ranges::any_of(program.at("expect"), [&](const json& ending) {
      return endings.contains(ending.get<std::string>());
    });
    CHECK(is_found);
    if (!is_wrong) {
      CHECK(endings == std::set<std::string>{"ok"});
    }
  }
}

TEST_CASE("every class has programs with a mistake, and as many without", "[explore]") {
  std::set<std::string> classes;
  std::int64_t balance = 0;
  for (const json& program : programs()) {
    classes.insert(program.at("class").get<std::string>());
    balance += program.at("is_wrong").get<bool>() ? 1 : -1;
  }
  CHECK(classes == std::set<std::string>{"call matching", "message race", "ordering", "parameter matching",
                                         "request lifecycle"});
  CHECK(balance == 0);
}

}  // namespace rollcall::scenario::program_classes_test
