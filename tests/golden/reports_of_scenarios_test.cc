// Passes every shipped scenario through the writers and readers of reports.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/format/report_reader.h"
#include "scenarios/format/scenario.h"
#include "scenarios/json/source.h"
#include "scenarios/run/runner.h"
#include "scenarios/test/collect.h"
#include "tests/catch.h"
#include "tests/shipped_scenarios.h"
#include "viz/html/html_report.h"
#include "viz/json/json_report.h"

namespace rollcall::test::reports_of_scenarios_test {
namespace {

std::string page_of(const Report& report) {
  std::ostringstream out;
  viz::html_report(report, out);
  return std::move(out).str();
}

// Returns the elements of the page's static part that are opened and not closed, or closed and not opened.
std::vector<std::string> unbalanced(const std::string& page) {
  static const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  const std::string content =
      page.substr(page.find("<main>"), page.find("</main>") + 7 - page.find("<main>"));
  std::vector<std::string> open;
  std::vector<std::string> wrong;
  for (std::sregex_iterator it(content.begin(), content.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if ((*it)[3].length() > 0 || name == "wbr") {
      continue;
    }
    if ((*it)[1].length() == 0) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      wrong.push_back(name);
    } else {
      open.pop_back();
    }
  }
  wrong.insert(wrong.end(), open.begin(), open.end());
  return wrong;
}

}  // namespace

TEST_CASE("the JSON report of every scenario reads back as itself, and its page is sound", "[fiber]") {
  REQUIRE(test::shipped_scenarios().size() > 40);
  for (const std::filesystem::path& file : test::shipped_scenarios()) {
    INFO(file.string());
    Report report = scenario::run(scenario::load_scenario(file.string()), {.seed = {}, .timeline = true});
    const std::string json = viz::json_report(report);
    const auto again = scenario::read_report(scenario::check_source("report.json", json));
    REQUIRE(again);
    CHECK(viz::json_report(*again) == json);
    CHECK(unbalanced(page_of(report)) == std::vector<std::string>{});
    CHECK(unbalanced(page_of(*again)) == std::vector<std::string>{});
    // A JSON report has no timeline.
    report.timeline = {};
    report.groups.clear();
    CHECK(page_of(*again) == page_of(report));
  }
}

}  // namespace rollcall::test::reports_of_scenarios_test
