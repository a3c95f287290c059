#include "viz/json/json_report.h"

#include <nlohmann/json.hpp>

#include "scenarios/format/report_reader.h"
#include "scenarios/json/source.h"
#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"

namespace rollcall::viz::json_report_test {

namespace {

using Json = nlohmann::ordered_json;

Json parsed(const Report& report) { return Json::parse(json_report(report)); }

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) {
    names.push_back(name);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a deadlock has the report format's fields, in its order") {
  Report report = samples::missing_rank(4);
  report.expected = true;
  const Json json = parsed(report);
  CHECK(keys(json) == Names{"schema_version", "scenario",   "seed",      "replay",   "world_size",
                            "backend",        "verdict",    "kind",      "culprits", "at",
                            "confidence",     "headline",   "cause",     "advice",   "on_backend",
                            "ranks",          "exhaustive", "schedules", "ops",      "simulated_time_ns",
                            "expected"});
  CHECK(json["schema_version"] == 1);
  CHECK(json["verdict"] == "deadlock");
  CHECK(json["kind"] == "missing_participant");
  CHECK(json["culprits"] == Json::array({0}));
  CHECK(json["at"] == Json::parse(R"({"op": "all_reduce", "group": "world", "seq": 5, "waiting": [1, 2, 3],
                                      "missing": [0], "site": "uneven_inputs.json:14:11"})"));
  CHECK(json["simulated_time_ns"] == 41'250);
  CHECK(json["expected"] == true);
}

TEST_CASE("ranks are grouped by state, as ranges") {
  const Json ranks = parsed(samples::missing_rank(1000))["ranks"];
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[0] == Json::parse(R"({"ranks": "0", "state": "finished", "inputs": 5})"));
  CHECK(ranks[1]["ranks"] == "1-999");
  CHECK(ranks[1]["state"] == "waiting");
  CHECK(ranks[1]["op"]["seq"] == 5);
  CHECK(ranks[1]["op"]["numel"] == 1);
  CHECK(ranks[1]["last_completed"]["seq"] == 4);
  CHECK(ranks[1]["waits_for"] == "0");
}

TEST_CASE("culprits and waiting ranks are lists of numbers, however many there are") {
  const Json json = parsed(samples::missing_rank(1000));
  REQUIRE(json["at"]["waiting"].size() == 999);
  CHECK(json["at"]["waiting"].back() == 999);
}

TEST_CASE("a run that completed has a kind and an empty list of culprits") {
  const Json json = parsed(samples::completed(4));
  CHECK(json["verdict"] == "ok");
  CHECK(json["kind"] == "ok");
  CHECK(json["culprits"] == Json::array());
  CHECK_FALSE(json.contains("at"));
  CHECK_FALSE(json.contains("expected"));  // there was no expectation
}

TEST_CASE("a mismatch lists who called what") {
  const Json variants = parsed(samples::size_mismatch())["variants"];
  REQUIRE(variants.size() == 2);
  CHECK(variants[0]["ranks"] == "0-2");
  CHECK(variants[0]["op"]["numel"] == 4);
  CHECK(variants[1]["ranks"] == "3");
  CHECK(variants[1]["op"]["numel"] == 5);
}

TEST_CASE("one variant is still a list of objects") {
  Report report = samples::size_mismatch();
  std::get<Mismatch>(report.verdict).variants.resize(1);
  const Json variants = parsed(report)["variants"];
  REQUIRE(variants.is_array());
  REQUIRE(variants.size() == 1);
  CHECK(variants[0].is_object());
}

TEST_CASE("a first divergence names ranks and labels side by side") {
  Report report = samples::missing_rank(4);
  Call save = samples::all_reduce(3);
  save.label = "save";
  auto& finding = std::get<Deadlock>(report.verdict).finding;
  finding.first_divergence = Divergence{"world", 3, {{{0}, save}, {{1, 2, 3}, samples::all_reduce(3)}}};
  finding.tie = true;
  finding.chain = {"rank 1 waits for rank 0"};
  const Json json = parsed(report);
  CHECK(json["tie"] == true);
  CHECK(json["chain"] == Json::array({"rank 1 waits for rank 0"}));
  CHECK(json["first_divergence"]["group"] == "world");
  CHECK(json["first_divergence"]["seq"] == 3);
  CHECK(json["first_divergence"]["ranks"] == Json::array({"0", "1-3"}));
  CHECK(json["first_divergence"]["labels"] == Json::array({"save", ""}));
}

TEST_CASE("each verdict brings its own evidence") {
  Finding finding;
  finding.kind = FindingKind::ops;
  CHECK(parsed(samples::report(LimitReached{finding, 10}, 1, {}))["limit"] ==
        Json({{"name", "ops"}, {"value", 10}}));
  CHECK(parsed(samples::report(RankFailed{finding, "ValueError: no"}, 1, {}))["exception"] ==
        "ValueError: no");
}

TEST_CASE("ranks that disagree about sizes, and calls that ranks are blocked in, are listed") {
  const Place place{samples::all_reduce(2), {0}, {1}};
  const Json blocked = parsed(samples::report(Deadlock{{}, {}, {place}}, 2, {}))["blocked"];
  CHECK(blocked ==
        Json::parse(R"([{"op": "all_reduce", "group": "world", "seq": 2, "waiting": [0], "missing": [1],
                                    "site": "uneven_inputs.json:14:11"}])"));
  CHECK(parsed(samples::report(Mismatch{{}, {}, {{0, 1, 4, 2}}}, 2, {}))["splits"] ==
        Json::parse(R"([{"sender": 0, "receiver": 1, "sent": 4, "expected": 2}])"));
}

TEST_CASE("the lines of source that calls come from are in the report") {
  Report report = samples::completed(1);
  report.sources = {{"a.json:3:5", "jobs/a.json", 3, 5, "barrier"}, {"b.py:2", "b.py", 2, 0, "pass"}};
  CHECK(parsed(report)["sources"] == Json::parse(R"([
      {"site": "a.json:3:5", "path": "jobs/a.json", "line": 3, "column": 5, "text": "barrier"},
      {"site": "b.py:2", "path": "b.py", "line": 2, "text": "pass"}])"));
}

TEST_CASE("what ranks printed is grouped") {
  Report report = samples::completed(4);
  report.output = {
      {0, 5, false, "10"}, {1, 5, false, "11"}, {2, 5, true, "UserWarning: skew"}, {3, 5, false, "11"}};
  const Json output = parsed(report)["output"];
  REQUIRE(output.size() == 3);
  CHECK(output[0] == Json::parse(R"({"ranks": "0", "time_ns": 5, "text": "10"})"));
  CHECK(output[1]["ranks"] == "1,3");
  CHECK(output[2] ==
        Json::parse(R"({"ranks": "2", "time_ns": 5, "text": "UserWarning: skew", "warning": true})"));
}

TEST_CASE("what was expected in vain is listed") {
  Report report = samples::completed(1);
  report.expected = false;
  report.unmet = {"expected deadlock"};
  CHECK(parsed(report)["expected"] == false);
  CHECK(parsed(report)["unmet"] == Json::array({"expected deadlock"}));
}

TEST_CASE("names that are no UTF-8 do not spoil the report") {
  Report report = samples::completed(1);
  report.scenario = "\xff";
  CHECK(parsed(report)["scenario"] == "\xef\xbf\xbd");
  CHECK(json_report(report).back() == '\n');
}

TEST_CASE("a message's other end and its tag are in the report, and read back from it") {
  Report report = samples::missing_rank(4);
  Call& call = std::get<Deadlock>(report.verdict).finding.at->call;
  call = {};
  call.op = "recv";
  call.group = "world";
  call.numel = 8;
  call.dtype = "float32";
  call.peer = 3;
  call.tag = 7;
  report.ranks.back().call = call;
  const Json json = parsed(report);
  CHECK(json["at"]["peer"] == 3);
  CHECK(json["at"]["tag"] == 7);
  CHECK(json["ranks"].back()["op"]["peer"] == 3);
  CHECK(json["ranks"].back()["op"]["tag"] == 7);
  const auto again = scenario::read_report(scenario::check_source("report.json", json_report(report)));
  REQUIRE(again);
  CHECK(again->ranks.back().call->peer == 3);
  CHECK(finding_of(again->verdict)->at->call.tag == 7);
}

}  // namespace rollcall::viz::json_report_test
