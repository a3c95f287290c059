// Scenarios that would fill any machine's memory, and the limits that prevent it.

#include <string>
#include <vector>

#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::memory_test {
namespace {

Report run_text(const std::string& text) { return run(parse_scenario(text, "test.json")); }

std::string pair(const std::string& statements) {
  return R"({"world_size": 2, "program": [)" + statements + "]}";
}

// On gloo, where a call fails in the call itself, and not later on a stream.
std::string gloo_pair(const std::string& statements) {
  return R"({"world_size": 2, "backend": "gloo", "program": [)" + statements + "]}";
}

std::vector<std::string> lines_of(const Report& report) {
  std::vector<std::string> lines;
  for (const OutputLine& line : report.output) {
    lines.push_back(line.text);
  }
  return lines;
}

}  // namespace

TEST_CASE("a loop that prints for ever is a verdict", "[scenarios][fiber]") {
  const Report report = run_text(pair(R"({"repeat": 1000000000000, "do": [{"print": "."}]})"));
  CHECK(kind_of(report.verdict) == FindingKind::output_lines);
  CHECK(report.output.size() == 1'000'000);
}

TEST_CASE("a loop that fills the store is a verdict", "[scenarios][fiber]") {
  const std::string value(1'000'000, 'x');
  const Report report = run_text(gloo_pair(R"({"for": "i", "in": [0, 1000000], "do": [
    {"store_set": {"key": "k{i}", "value": ")" +
                                           value + R"("}}]})"));
  CHECK(kind_of(report.verdict) == FindingKind::store_size);
  // Keys that are set again or deleted take no additional memory.
  CHECK(verdict_word(run_text(gloo_pair(R"({"for": "i", "in": [0, 600], "do": [
    {"store_set": {"key": "k", "value": ")" +
                                        value + R"("}}, {"store_delete": {"key": "k"}}]})"))
                         .verdict) == "ok");
}

TEST_CASE("long loops on the store take time in proportion, and say that other orders were not looked at",
          "[scenarios][fiber]") {
  const std::string loop = R"({"for": "i", "in": [0, 20000], "do": [
    {"store_add": {"key": "k{i}", "value": 1}}]})";
  CHECK(run_text(R"({"world_size": 1, "backend": "gloo", "program": [)" + loop + "]}").exhaustive);
  CHECK_FALSE(run_text(gloo_pair(loop)).exhaustive);
}

TEST_CASE("a loop of calls that nobody waits for is a verdict", "[scenarios][fiber]") {
  const Report report = run_text(
      gloo_pair(R"({"repeat": 1000000000000, "do": [{"all_reduce": {"async_op": true, "as": "w"}}]})"));
  CHECK(kind_of(report.verdict) == FindingKind::pending_calls);
}

TEST_CASE("on nccl such a loop waits for its GPU, and is found out when that is stuck",
          "[scenarios][fiber]") {
  const Report report = run_text(pair(R"(
    {"if": "rank == 0", "do": [
      {"repeat": 1000000000000, "do": [{"all_reduce": {"async_op": true, "as": "w"}}]}]})"));
  CHECK(verdict_word(report.verdict) == "deadlock");
}

TEST_CASE("results of one value cost nothing, however large", "[scenarios][fiber]") {
  const Report report = run_text(pair(R"(
    {"all_gather_into_tensor": {"numel": 50000000000, "value": 3, "output": "gathered"}},
    {"all_to_all_single": {"numel": 100000000000, "value": 4, "output": "exchanged"}},
    {"reduce_scatter_tensor": {"numel": 100000000000, "value": "rank", "output": "reduced"}},
    {"print": "{gathered} {exchanged} {reduced}"})"));
  const std::string line = "[3, 3, 3, ..., 3, 3, 3] [4, 4, 4, ..., 4, 4, 4] [1, 1, 1, ..., 1, 1, 1]";
  CHECK(lines_of(report) == std::vector<std::string>{line, line});
}

TEST_CASE("results that differ by element and fill any memory are refused in the ranks",
          "[scenarios][fiber]") {
  for (const std::string call : {"all_gather_into_tensor", "all_to_all_single"}) {
    INFO(call);
    // The host sees the failure of its GPU's stream when it reads the output.
    const Report report = run_text(
        pair(R"({"try": {"do": [{")" + call + R"(": {"numel": 100000000000, "value": "rank", "output": "o"}},
                          {"print": "{o}"}],
                   "except": [{"print": "{error_type}: {error}"}]}},
        {"all_reduce": {}})"));
    CHECK(verdict_word(report.verdict) == "ok");  // the ranks continue after the exception
    REQUIRE(report.output.size() == 2);
    CHECK_THAT(report.output[0].text, StartsWith("RuntimeError: " + call + ": the results differ"));
  }
}

TEST_CASE("results that differ by element and fit are computed", "[scenarios][fiber]") {
  const Report report = run_text(pair(R"(
    {"all_gather_into_tensor": {"numel": 2, "value": "rank", "output": "o"}}, {"print": "{o}"},
    {"all_reduce": "o"}, {"print": "{o}"}, {"all_gather": {"tensor": "o", "output": "l"}}, {"print": "{l}"})"));
  CHECK(lines_of(report) == std::vector<std::string>{"[0, 0, 1, 1]", "[0, 0, 2, 2]",
                                                     "[[0, 0, 2, 2], [0, 0, 2, 2]]", "[0, 0, 1, 1]",
                                                     "[0, 0, 2, 2]", "[[0, 0, 2, 2], [0, 0, 2, 2]]"});
}

}  // namespace rollcall::scenario::memory_test
