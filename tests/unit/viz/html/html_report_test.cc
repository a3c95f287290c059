#include "viz/html/html_report.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/catch.h"
#include "tests/count.h"
#include "tests/unit/viz/recorded_calls.h"
#include "tests/unit/viz/sample_reports.h"

namespace rollcall::viz::html_report_test {

namespace {

using test::count;

std::string page(const Report& report) {
  std::ostringstream out;
  html_report(report, out);
  return std::move(out).str();
}

// Returns what a reader sees without scripts and styles.
std::string static_text(const Report& report) {
  const std::string html = page(report);
  const std::size_t begin = html.find("<main>");
  const std::string content = html.substr(begin, html.find("</main>") - begin);
  return std::regex_replace(content, std::regex("<[^>]*>"), "");
}

}  // namespace

TEST_CASE("the first screen of a page says all that the text report says") {
  const std::string text = static_text(samples::missing_rank(4));
  CHECK_THAT(text, Contains("deadlock: rank 0 never called all_reduce #5 on world (3 of 4 ranks wait)"));
  CHECK_THAT(text, Contains("rank 0 had 5 inputs and finished, the others have 6"));
  CHECK_THAT(text, Contains("wrap the loop in Join"));
  CHECK_THAT(text, Contains("the others hang until the watchdog stops them"));
  CHECK_THAT(text, Contains("all_reduce #5 (float32 x 1, SUM)"));
  CHECK_THAT(text, Contains("at uneven_inputs.json:14:11"));
  CHECK_THAT(text, Contains("\u2717</bdi> rank 0") || Contains("\u2717 rank 0"));
  CHECK_THAT(text, Contains("rollcall run scenarios/uneven_inputs.json --seed 0"));
}

TEST_CASE("calls that differ stand side by side on the page") {
  const std::string html = page(samples::size_mismatch());
  CHECK_THAT(html, Contains("Who called what"));
  CHECK_THAT(html, Contains(R"(<td class="differs short" align="left" valign="top">5</td>)"));
}

TEST_CASE("messages that never completed are listed") {
  Report report = samples::missing_rank(4);
  samples::record_message(report, 2, 3, "send", 0);
  samples::record_message(report, 1, -1, "recv", 0);
  samples::record_message(report, 0, 1, "send", 0, 5);
  std::string text = static_text(report);
  text.erase(0, text.find("Messages that never completed"));
  CHECK_THAT(text, Contains("#0send to rank 3 (float32 x 4)"));
  CHECK_THAT(text, Contains("recv from anyone"));
  CHECK(text.find("to rank 1") == std::string::npos);
}

TEST_CASE("a page has the elements it opens, whatever the names in it are") {
  Report report = samples::missing_rank(4);
  const std::string hostile = "</script></main><script>alert(1)</script>\"'<!--";
  report.scenario = hostile;
  report.ranks[1].call->label = hostile;
  report.output.push_back({0, 0, false, hostile});
  samples::record(report, {.rank = 0, .start = 0, .end = 1, .group = hostile, .label = hostile});
  const std::string html = page(report);
  CHECK(count(html, "<script") == 2);  // the data and the program
  CHECK(count(html, "</script>") == 2);
  CHECK(count(html, "</main>") == 1);
  CHECK_THAT(html, Contains("&lt;script&gt;alert(1)"));
  for (const char* tag : {"table", "tr", "td", "th", "p", "svg", "g", "section", "ol", "bdi"}) {
    INFO(tag);
    CHECK(count(html, std::string("<") + tag + " ") + count(html, std::string("<") + tag + ">") ==
          count(html, std::string("</") + tag + ">"));
  }
}

TEST_CASE("a page loads nothing") {
  Report report = samples::missing_rank(4);
  samples::record_common(report, 3);
  const std::string html = page(report);
  CHECK_THAT(html, Contains("default-src &#39;none&#39;"));
  CHECK_FALSE(std::regex_search(html, std::regex(R"((src|href)="(?!data:))")));
  CHECK(html.find("@import") == std::string::npos);
}

TEST_CASE("a report without a timeline is a page without scripts") {
  const std::string html = page(samples::missing_rank(4));
  CHECK(count(html, "<script") == 0);
  CHECK_THAT(html, Contains("This report has no timeline"));
}

TEST_CASE("a page says what uneven inputs cost under Join") {
  Report report = samples::completed(3);
  CHECK_THAT(static_text(report), !Contains("Cost"));
  report.joins.push_back(join_cost("world",
                                   {{.rank = 0, .steps = 2, .shadow_calls = 4, .joined = 20, .left = 40},
                                    {.rank = 1, .steps = 4, .joined = 40, .left = 40},
                                    {.rank = 2, .steps = 4, .joined = 40, .left = 40}},
                                   100));
  const std::string text = static_text(report);
  CHECK_THAT(text, Contains("Join: 4 steps on world with 2.5 of 3 ranks on average"));
  CHECK_THAT(text, Contains("20.0 %"));
  CHECK_THAT(text, Contains("steps 3 to 42 of 3"));  // cells side by side: two of three ranks had inputs
  CHECK_THAT(text, Contains("would lose 40.0 % of the inputs and save 20.0 % of the time"));
}

TEST_CASE("a page says what a sampler does with the samples") {
  Report report = samples::completed(2);
  report.samples = SampleUse{.dataset = 5, .ranks = 2, .fewest = 3, .most = 3, .repeated = 1};
  CHECK_THAT(static_text(report), Contains("Samples: " + samples_phrase(*report.samples)));
}

TEST_CASE("a success is a page, too") {
  Report report = samples::completed(1000);
  samples::record_common(report, 3);
  const std::string text = static_text(report);
  CHECK_THAT(text, Contains("ok: 1000 ranks finished"));
  CHECK(text.find("Calls side by side") == std::string::npos);
}

TEST_CASE("a page of 64 ranks with 200 calls each has less than 300 kB") {
  Report report = samples::missing_rank(64);
  std::uint64_t chance = 1;
  Time now = 0;
  for (std::int64_t seq = 0; seq < 200; ++seq) {
    for (Rank rank = 0; rank < 64; ++rank) {
      chance = chance * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX: no two ranks alike
      const auto late = static_cast<Time>(chance >> 44);
      samples::record(report, {.rank = rank, .seq = seq, .start = now + late, .end = now + 2'000'000});
    }
    now += 3'000'000;
  }
  const std::string html = page(report);
  CHECK(html.size() < 300'000);
  CHECK(html == page(report));
}

}  // namespace rollcall::viz::html_report_test
