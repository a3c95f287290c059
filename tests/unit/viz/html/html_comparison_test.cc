#include "viz/html/html_comparison.h"

#include <regex>
#include <sstream>

#include "tests/catch.h"
#include "tests/unit/viz/recorded_calls.h"
#include "tests/unit/viz/sample_reports.h"
#include "viz/rows/merged_runs.h"

namespace rollcall::viz::html_comparison_test {

namespace {
using samples::record;
using samples::record_common;

Report hang() {
  Report report = samples::missing_rank(4);
  std::get<Deadlock>(report.verdict).finding.at->call.seq = 5;
  record_common(report, 5);
  for (Rank rank = 1; rank < 4; ++rank) {
    record(report, {.rank = rank, .seq = 5, .start = 50});
  }
  return report;
}

Report fixed() {
  Report report = samples::missing_rank(4);
  report.verdict = Completed{};
  record_common(report, 6);
  return report;
}

std::string page(const Report& before, const Report& after, const std::vector<ComparedFact>& facts = {}) {
  std::ostringstream out;
  html_comparison({{"before", &before}, {"after", &after}, facts}, out);
  return std::move(out).str();
}

std::string text(const std::string& html) {
  const std::size_t begin = html.find("<main>");
  return std::regex_replace(html.substr(begin, html.find("</main>") - begin), std::regex("<[^>]*>"), "");
}

}  // namespace

TEST_CASE("a comparison shows both verdicts, both timelines and what differs") {
  const Report before = hang();
  const Report after = fixed();
  const std::string html =
      page(before, after,
           {{"verdict", "deadlock", "ok", ComparedFact::Judgement::differs, ""},
            {"output", "0 lines", "0 lines", ComparedFact::Judgement::same, ""},
            {"time", "simulated", "measured", ComparedFact::Judgement::open, "no reference"}});
  const std::string shown = text(html);
  CHECK_THAT(shown, Contains("before and after differ in verdict"));
  CHECK_THAT(shown, Contains("rank 0 never called all_reduce #5"));
  CHECK_THAT(shown, Contains("4 ranks finished"));
  CHECK_THAT(shown, Contains("\u2260 differs"));
  CHECK_THAT(shown, Contains("= same"));
  CHECK_THAT(shown, Contains("? cannot be judged"));
  CHECK_THAT(html, Contains("id=\"timeline-data\""));
  CHECK_THAT(html, Contains("id=\"timeline-data-2\""));
}

TEST_CASE("ranks of both runs with equal calls share a column") {
  const std::string shown = text(page(hang(), fixed()));
  CHECK_THAT(shown, Contains("before, rank 0"));
  CHECK_THAT(shown, Contains("before, ranks 1-3; after, ranks 0-3") || Contains("after, ranks 0-3"));
}

TEST_CASE("hostile names in a comparison are text") {
  Report before = hang();
  before.scenario = "</script><b onload=x>";
  const std::string html =
      page(before, before, {{"<i>", "<u>", "<s>", ComparedFact::Judgement::differs, "<q>"}});
  for (const char* tag : {"<b onload", "<i>", "<u>", "<s>", "<q>"}) {
    CHECK(html.find(tag) == std::string::npos);
  }
}

TEST_CASE("merged, the second run's ranks follow the first one's") {
  const Report merged = merged_runs(fixed(), hang());
  CHECK(merged.world_size == 8);
  const Finding* finding = finding_of(merged.verdict);
  REQUIRE(finding != nullptr);
  CHECK(finding->culprits == RankSet{4});
  CHECK(merged.timeline.spans().size() == fixed().timeline.spans().size() + hang().timeline.spans().size());
  CHECK(merged.timeline.spans().back().rank >= 4);
  CHECK(merged.of(5).waits_for == RankSet{4});
}

}  // namespace rollcall::viz::html_comparison_test
