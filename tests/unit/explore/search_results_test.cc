// Searches by several threads, and in parts: whoever searches, a complete search gives one report.

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/search_results.h"
#include "tests/catch.h"
#include "viz/json/json_report.h"
#include "viz/text/text_report.h"

namespace rollcall::scenario::search_results_test {
namespace {

// Calls `check` with each scenario of tests/data/explore.
template <typename Check>
void for_each_classic(const Check& check) {
  for (const auto& entry : std::filesystem::directory_iterator(ROLLCALL_SOURCE_DIR "/tests/data/explore")) {
    if (entry.path().extension() == ".json") {
      INFO(entry.path().filename().string());
      check(load_scenario(entry.path().string()));
    }
  }
}

}  // namespace

TEST_CASE("a complete search gives the same report with any number of threads", "[explore][fiber]") {
  for_each_classic([](const Scenario& scenario) {
    const auto text = [&](int jobs) {
      const Report report = explore(scenario, {.search = {.jobs = jobs}});
      return viz::json_report(report) + viz::text_report(report, {});
    };
    const std::string alone = text(1);
    CHECK(text(2) == alone);
    CHECK(text(3) == alone);
  });
}

TEST_CASE("the shards of a search find together what one search finds, and agree on the verdict",
          "[explore][fiber]") {
  for_each_classic([](const Scenario& scenario) {
    const Report whole = explore(scenario, {});
    constexpr std::uint32_t shards = 3;
    std::vector<NamedResult> results;
    for (std::uint32_t index = 0; index < shards; ++index) {
      const Report part = explore(scenario, {.search = {.shard = {index, shards}}});
      if (part.schedules == 0) {
        CHECK_THAT(viz::text_report(part, {}), Contains("not run: "));
      }
      results.push_back({std::to_string(index), viz::json_report(part)});
    }
    const MergedResult merged = merge_results(results);
    const auto json = nlohmann::json::parse(merged.json);
    CHECK(merged.verdict == verdict_word(whole.verdict));
    CHECK(json["schedules"] == whole.schedules);
    for (const rollcall::Outcome& outcome : whole.search->outcomes) {
      std::int64_t count = 0;
      for (const auto& each : json["outcomes"]) {
        count += each["verdict"] == outcome.verdict ? each["count"].get<std::int64_t>() : 0;
      }
      INFO(outcome.verdict);
      CHECK(count == outcome.count);
    }
  });
}

}  // namespace rollcall::scenario::search_results_test
