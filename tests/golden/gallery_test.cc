// docs/gallery.md: what rollcall says about every kind of failure, from the shipped examples. For each kind, it shows
// the shortest of their reports. After an intended change:
//
//   ROLLCALL_BLESS=1 build/dev/rollcall_tests '[golden-report],[gallery]'

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <fmt/core.h>

#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/shipped_scenarios.h"
#include "viz/kinds/explanations.h"

namespace rollcall::test::gallery_test {
namespace {

namespace fs = std::filesystem;

struct Picture {
  fs::path scenario;
  std::string report;
};

// "error[op_mismatch]: ..." -> "op_mismatch"; empty if all is well.
std::string kind_of(const std::string& report) {
  const std::size_t from = report.find('[');
  const std::size_t to = report.find("]: ");
  return from < to && to < report.find('\n') ? report.substr(from + 1, to - from - 1) : "";
}

// The report names the verdict; the kind comes from its scenario's `expect`.
std::string expected_kind(const std::string& scenario) {
  constexpr std::string_view key = R"("kind": ")";
  const std::size_t at = scenario.find(key, scenario.rfind(R"("expect")"));
  if (at == std::string::npos) {
    return "";
  }
  const std::size_t from = at + key.size();
  return scenario.substr(from, scenario.find('"', from) - from);
}

std::map<std::string, Picture> shortest_reports() {
  std::map<std::string, Picture> shortest;
  for (const fs::path& scenario : shipped_scenarios()) {
    fs::path expected = scenario;
    expected.replace_extension(".expected");
    if (!fs::exists(expected)) {
      continue;
    }
    const std::string report = contents(expected);
    const std::string expects = expected_kind(contents(scenario));
    const std::string kind = expects.empty() ? kind_of(report) : expects;
    Picture& picture = shortest[kind];
    if (!kind.empty() && (picture.report.empty() || report.size() < picture.report.size())) {
      picture = {scenario, report};
    }
  }
  return shortest;
}

std::string page() {
  std::string text =
      "# Gallery\n\n"
      "What `rollcall run` prints about each kind of failure. Every report is that of an example that ships, "
      "and a "
      "test keeps\n"
      "this page up to date. [findings.md](findings.md) explains the kinds, and "
      "[html-report.md](html-report.md) shows\n"
      "the same reports as pages.\n";
  const std::map<std::string, Picture> shortest = shortest_reports();
  for (const viz::Explanation& each : viz::explanations()) {
    const auto found = shortest.find(each.word);
    if (found == shortest.end() || found->second.report.empty()) {
      continue;
    }
    const std::string path = fs::relative(found->second.scenario, ROLLCALL_SOURCE_DIR).generic_string();
    text += fmt::format("\n## {}: {}\n\n[{}](../{})\n\n```text\n{}```\n", each.word, each.title, path, path,
                        found->second.report);
  }
  return text;
}

}  // namespace

TEST_CASE("the gallery shows a report of every kind that an example has", "[gallery]") {
  const fs::path file = fs::path(ROLLCALL_SOURCE_DIR) / "docs" / "gallery.md";
  const std::string made = page();
  if (std::getenv("ROLLCALL_BLESS") != nullptr) {
    std::ofstream(file, std::ios::binary) << made;
  }
  INFO("docs/gallery.md; if the change is meant: ROLLCALL_BLESS=1");
  CHECK(made == contents(file));
}

}  // namespace rollcall::test::gallery_test
