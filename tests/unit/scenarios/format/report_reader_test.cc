#include "scenarios/format/report_reader.h"

#include <limits>
#include <sstream>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"
#include "viz/html/html_report.h"
#include "viz/json/json_report.h"
#include "viz/text/text_report.h"

namespace rollcall::scenario::report_reader_test {

namespace {

std::optional<Report> read(const std::string& text) { return read_report(check_source("report.json", text)); }

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InvalidScenario& error) {
    return error.what();
  }
  return "";
}

// Two culprits, the second of which is likelier.
Finding suspicious() {
  Finding finding;
  finding.kind = FindingKind::order_crossing;
  finding.culprits = {0, 2};
  finding.suspects = {2, 0};
  finding.suspicion = "rank 2 alone called it in this order";
  return finding;
}

std::vector<Report> sample_reports() {
  std::vector<Report> reports = {samples::completed(8), samples::missing_rank(4), samples::size_mismatch()};
  Report raised =
      samples::report(RankFailed{{}, "ValueError: bad sample"}, 2,
                      {samples::raised({0}, "ValueError: bad sample"), samples::finished({1}, 3)});
  std::get<RankFailed>(raised.verdict).finding.culprits = {0};
  reports.push_back(raised);
  Finding limit;
  limit.kind = FindingKind::ops;
  reports.push_back(samples::report(LimitReached{limit, 100}, 1, {samples::finished({0}, -1)}));
  Report diverged = samples::missing_rank(4);
  Finding& finding = std::get<Deadlock>(diverged.verdict).finding;
  finding.tie = true;
  finding.chain = {"rank 1 waits for rank 0"};
  finding.first_divergence =
      Divergence{"world", 2, {{{0}, samples::all_reduce(2)}, {{1, 2, 3}, samples::all_reduce(2)}}};
  diverged.output = {{0, 5, false, "hello"}, {1, 5, true, "careful"}};
  diverged.expected = false;
  diverged.unmet = {"expected ok"};
  reports.push_back(diverged);
  reports.push_back(samples::completed(2));
  reports.back().measured = true;
  const TensorPlace tensor{{0, 1}, "t", "3", "4", "", "values.json:3:5"};
  reports.push_back(samples::report(WrongResult{suspicious(), {}, {tensor}}, 4, {}));
  reports.push_back(samples::report(
      Race{suspicious(), {}, {{{2}, "t", "", "", "w", ""}}, {{"ok", FindingKind::ok, 3}}}, 4, {}));
  reports.push_back(samples::report(ResourceLeak{suspicious(), {{{1}, samples::all_reduce(2)}}}, 4, {}));
  const Place place{samples::all_reduce(2), {0}, {1}};
  reports.push_back(samples::report(Deadlock{suspicious(), {place}, {place, place}}, 4, {}));
  reports.push_back(samples::report(Mismatch{suspicious(), {}, {{0, 1, 4, 2}, {1, 0, 3, 1}}}, 4, {}));
  reports.push_back(samples::size_mismatch());
  reports.back().search =
      SearchResult{{{"ok", FindingKind::ok, 2}, {"mismatch", FindingKind::numel_mismatch, 1}},
                   {{"mismatch", FindingKind::numel_mismatch, "rank 3 differs", {3}, 1, "run"}},
                   3,
                   1,
                   std::numeric_limits<double>::infinity(),
                   {"not all were run"},
                   true};
  reports.push_back(samples::size_mismatch());
  reports.back().samples = SampleUse{.dataset = 10, .ranks = 2, .seeds = {7, 8}, .fewest = 5, .most = 5};
  reports.back().sources = {{"sizes.json:12:9", "jobs/sizes.json", 12, 9, "{ \"all_reduce\": 5 }"}};
  return reports;
}

}  // namespace

TEST_CASE("a JSON report that is read back is the same report") {
  for (const Report& report : sample_reports()) {
    const std::string text = viz::json_report(report);
    const std::optional<Report> again = read(text);
    REQUIRE(again);
    CHECK(viz::json_report(*again) == text);
    CHECK(viz::text_report(*again, {}) == viz::text_report(report, {}));
  }
}

TEST_CASE("what the page of a run shows is read back from its JSON report") {
  const std::vector<Report> reports = sample_reports();
  const auto page_of = [](const Report& report) {
    std::ostringstream page;
    viz::html_report(report, page);
    return page.str();
  };
  for (const Report& report : reports) {
    CHECK(page_of(*read(viz::json_report(report))) == page_of(report));
  }
}

TEST_CASE("what no page shows is read back from a JSON report, too") {
  const TensorPlace place{{0, 1}, "t", "3", "4", "", "values.json:3:5", 41};
  Report report = samples::report(WrongResult{suspicious(), {}, {place}}, 4, {});
  report.search = SearchResult{{{"ok", FindingKind::ok, 2}}, {}, 2, 1, 3.5, {"not all were run"}, true};
  const std::optional<Report> again = read(viz::json_report(report));
  REQUIRE(again);
  CHECK(std::get<WrongResult>(again->verdict).values.front().time == 41);
  REQUIRE(again->search);
  CHECK(again->search->outcomes == report.search->outcomes);
  CHECK(again->search->distinct == 2);
  CHECK(again->search->cut == 1);
  CHECK(again->search->space == 3.5);
  CHECK(again->search->bounds == report.search->bounds);
  CHECK(again->search->interrupted);
}

TEST_CASE("a report with an older word for its kind is read") {
  const std::optional<Report> report =
      read(R"({ "schema_version": 1, "world_size": 2, "verdict": "deadlock", "kind": "store_circle" })");
  REQUIRE(report);
  CHECK(kind_of(report->verdict) == FindingKind::store_cycle);
}

TEST_CASE("JSON without a schema version is no report") { CHECK_FALSE(read(R"({ "version": 1 })")); }

TEST_CASE("what is wrong with a report is said with its place") {
  const std::string start = R"({ "schema_version": 1, "world_size": 4, )";
  CHECK_THAT(error_of(start + R"("verdict": "deadlok" })"),
             Contains("report.json:1:52: error: /verdict: unknown verdict \"deadlok\" (did you mean "
                      "\"deadlock\"?)"));
  CHECK_THAT(error_of(start + R"("verdict": "ok", "ranks": [ { "ranks": "0-9", "state": "finished" } ] })"),
             Contains("/ranks/0/ranks"));
  CHECK_THAT(error_of(start + R"("verdict": "deadlock", "kind": "store_cicle" })"),
             Contains("/kind: unknown kind \"store_cicle\" (did you mean \"store_cycle\"?)"));
  CHECK_THAT(error_of(start + R"("verdict": "ok", "ranks": [ { "ranks": "0", "state": "asleep" } ] })"),
             Contains("\"asleep\" is not a rank state"));
  CHECK_THAT(error_of(start + R"("verdict": "ok", "ranks": {} })"),
             Contains("/ranks: expected an array here, found an object"));
  CHECK_THAT(error_of(R"({ "schema_version": 2 })"), Contains("reports of version 1"));
  CHECK_THAT(error_of(R"({ "schema_version": 1, "verdict": "ok" })"), Contains("world_size"));
  CHECK_THAT(error_of("{ \"schema_version\": 1, "), Contains("report.json:1:"));
}

}  // namespace rollcall::scenario::report_reader_test
