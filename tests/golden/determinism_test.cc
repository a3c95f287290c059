// The same run gives the same bytes. Every shipped scenario is run twice, and all of its output is compared; then with
// different seeds, because the order in which ranks run must not change the outcome.

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/shipped_scenarios.h"
#include "viz/json/json_report.h"
#include "viz/text/text_report.h"
#include "viz/traces/chrome_trace.h"

namespace rollcall::determinism_test {
namespace {

std::vector<std::string> shipped_scenarios() {
  std::vector<std::string> files;
  std::ranges::copy(test::shipped_examples(), std::back_inserter(files));
  return files;
}

std::string chrome_trace_of(const Report& report) {
  std::ostringstream out;
  viz::chrome_trace(report, out);
  return out.str();
}

viz::TextStyle verbose() {
  viz::TextStyle style;
  style.detail = viz::TextStyle::Detail::verbose;
  return style;
}

// Returns what a report says without its seed: verdict, classes, printed lines, times.
std::string without_seed(Report report) {
  report.seed = 0;
  report.replay.clear();
  return viz::json_report(report) + viz::text_report(report, verbose());
}

}  // namespace

TEST_CASE("there are scenarios to be deterministic about", "[determinism]") {
  CHECK(shipped_scenarios().size() >= 20);
}

TEST_CASE("a scenario run twice leaves the same bytes", "[determinism][fiber]") {
  for (const std::string& file : shipped_scenarios()) {
    INFO(file);
    // Also loads it twice: nothing may depend on a scenario's address in memory.
    const Report once = scenario::run(scenario::load_scenario(file), {.timeline = true});
    const Report again = scenario::run(scenario::load_scenario(file), {.timeline = true});
    CHECK(once.timeline.fingerprint() == again.timeline.fingerprint());
    CHECK(once.timeline.spans().size() == again.timeline.spans().size());
    CHECK(viz::text_report(once, verbose()) == viz::text_report(again, verbose()));
    CHECK(viz::json_report(once) == viz::json_report(again));
    CHECK(chrome_trace_of(once) == chrome_trace_of(again));
  }
}

TEST_CASE("recording a timeline changes nothing else", "[determinism][fiber]") {
  for (const std::string& file : shipped_scenarios()) {
    INFO(file);
    const scenario::Scenario scenario = scenario::load_scenario(file);
    const Report recorded = scenario::run(scenario, {.timeline = true});
    const Report plain = scenario::run(scenario);
    CHECK(viz::json_report(recorded) == viz::json_report(plain));
    CHECK(viz::text_report(recorded, verbose()) == viz::text_report(plain, verbose()));
  }
}

TEST_CASE("the order in which ranks run cannot be seen in a report", "[determinism][fiber]") {
  for (const std::string& file : shipped_scenarios()) {
    const scenario::Scenario scenario = scenario::load_scenario(file);
    const std::string expected = without_seed(scenario::run(scenario, {.seed = 0}));
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
      INFO(file << " --seed " << seed);
      CHECK(without_seed(scenario::run(scenario, {.seed = seed})) == expected);
    }
  }
}

}  // namespace rollcall::determinism_test
