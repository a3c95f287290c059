// Recordings of hung jobs end where their ranks stood still. What the ranks would have called next is not known.

#include <string>

#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::open_ends_test {
namespace {

Report report_of(const std::string& program, const std::string& stalled = "0-3") {
  return run(parse_scenario(R"({"world_size": 4, "backend": "nccl", "stalled": ")" + stalled +
                                R"(", "program": [)" + program + "]}",
                            "test.json"));
}

const std::string steps =
    R"({"repeat": 2, "do": [{"all_reduce": {"numel": 9, "label": "ddp", "async_op": true, "as": "a"}},
        {"all_reduce": {"numel": 2, "label": "used"}}, {"wait": "a"}]},
       {"all_gather": {"numel": 1}})";

std::string only(const std::string& ranks, const std::string& statement) {
  return R"(, {"if": ")" + ranks + R"(", "do": [)" + statement + "]}";
}

const Finding& finding(const Report& report) {
  REQUIRE(finding_of(report.verdict) != nullptr);
  return *finding_of(report.verdict);
}

}  // namespace

TEST_CASE("the rank that leaves the loop is to blame, although nobody knows what follows",
          "[scenarios][judge]") {
  const Report report =
      report_of(steps + only("rank != 1", R"({"all_reduce": {"numel": 9, "label": "ddp"}})") +
                only("rank == 1", R"({"all_gather": {"numel": 1}})"));
  CHECK(finding(report).culprits == RankSet{1});
  CHECK_FALSE(finding(report).tie);
  REQUIRE(finding(report).repair);
  CHECK(finding(report).repair->is_partial);
}

TEST_CASE("a run that goes past the point where its recording stood still proves nothing",
          "[scenarios][judge]") {
  const Report alone = report_of(steps + only("rank != 1", R"({"barrier": {}})"), "1");
  CHECK(finding(alone).kind == FindingKind::stalled);
  CHECK(finding(alone).culprits.empty());
  const Report together = report_of(steps);
  CHECK(finding(together).kind == FindingKind::stalled);
}

TEST_CASE("ranks that stand still where their recording did are judged", "[scenarios][judge]") {
  const Report report = report_of(steps + only("rank == 1", R"({"recv": {"numel": 1, "src": 2}})") +
                                      only("rank == 2", R"({"recv": {"numel": 1, "src": 1}})"),
                                  "1-2");
  CHECK(std::holds_alternative<Deadlock>(report.verdict));
  CHECK(finding(report).culprits == RankSet{1, 2});
}

TEST_CASE("leaving out the call in which all ranks meet with other sizes is not a repair",
          "[scenarios][judge]") {
  const auto parts = [](const std::string& rank, const std::string& out, const std::string& in,
                        const std::string& more) {
    return R"({"if": "rank == )" + rank +
           R"(", "do": [{"all_to_all_single": {"numel": 4, "output_split_sizes": )" + out +
           R"(, "input_split_sizes": )" + in + R"(, "site": "moe.py:21"}})" + more + "]}";
  };
  const std::string raises = R"(, {"raise": {"type": "RuntimeError", "message": "enforce fail"}})";
  const Report report = run(parse_scenario(
      R"({"world_size": 2, "backend": "gloo", "stalled": "0", "program": [)" +
          parts("0", "[2, 3]", "[2, 2]", "") + "," + parts("1", "[2, 3]", "[3, 1]", raises) + "]}",
      "test.json"));
  CHECK(finding(report).kind == FindingKind::split_mismatch);
  REQUIRE(finding(report).repair);
  CHECK(finding(report).repair->steps.empty());
}

TEST_CASE("a message that was not made yet is not missing", "[scenarios][judge]") {
  // Rank 2 would have sent to rank 3 next: only rank 1's message goes elsewhere.
  const Report report = report_of(R"({"if": "rank == 1", "do": [{"send": {"numel": 8, "dst": 3}}]},
      {"if": "rank == 2", "do": [{"recv": {"numel": 8, "src": 1}}]},
      {"if": "rank == 3", "do": [{"recv": {"numel": 8, "src": 2}}]})");
  CHECK(finding(report).headline.find("it is rank 1 that sends") == std::string::npos);
}

}  // namespace rollcall::scenario::open_ends_test
