// Group and store statements: what they do when a scenario runs, and the errors in bad ones.

#include <string>
#include <vector>

#include "scenarios/run/runner.h"
#include "sim/report/blame.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::host_calls_test {
namespace {

using test::problem;
using test::quartet;

Report run_text(const std::string& text) { return run(parse_scenario(text, "test.json"), {}); }

// Returns "ok", or text such as "deadlock missing_participant 2".
std::string outcome(const std::string& text) {
  const Report report = run_text(text);
  const Finding* finding = finding_of(report.verdict);
  const std::string word(verdict_word(report.verdict));
  return finding == nullptr
             ? word
             : fmt::format("{} {} {}", word, to_string(finding->kind), to_string(finding->culprits));
}

std::vector<std::string> lines(const Report& report) {
  std::vector<std::string> texts;
  for (const OutputLine& line : report.output) {
    texts.push_back(std::to_string(line.rank) + ": " + line.text);
  }
  return texts;
}

}  // namespace

TEST_CASE("a statement makes a group that later ones use", "[scenarios][groups][fiber]") {
  CHECK(outcome(quartet(R"(
      {"new_group": [3, 1], "as": "odd"}, {"new_group": {}, "as": "all"},
      {"all_reduce": {"tensor": "t", "value": 1, "group": "odd"}},
      {"all_reduce": {"tensor": "t", "group": "all"}},
      {"check": "t", "value": 6})")) == "ok");
  CHECK(outcome(quartet(R"({"if": "rank != 1", "do": [{"new_group": "0-1"}]})", R"("backend": "gloo",)")) ==
        "deadlock missing_participant 1");
  CHECK(outcome(quartet(R"({"if": "rank == 0",
      "do": [{"new_group": "0-1"}], "else": [{"new_group": "1-2"}]})")) == "mismatch group_args_mismatch 0");
}

TEST_CASE("a group that this rank has not made is a NameError", "[scenarios][groups][fiber]") {
  const Report report = run_text(quartet(R"({"if": "false", "do": [{"new_group": {}, "as": "g"}]},
      {"try": {"do": [{"barrier": {"group": "g"}}], "except": [{"print": "{error_type}: {error}"}]}})"));
  CHECK(lines(report).front() == "0: NameError: name 'g' is not defined");
}

TEST_CASE("subgroups are of a host, or as large as told", "[scenarios][groups][fiber]") {
  CHECK(outcome(quartet(R"(
      {"new_subgroups": {"as": "host"}}, {"new_subgroups": "world_size / 4", "as": "self"},
      {"all_reduce": {"tensor": "t", "value": 1, "group": "host"}}, {"check": "t", "value": 2},
      {"all_reduce": {"tensor": "t", "group": "self"}}, {"check": "t", "value": 2})",
                        R"("cluster": {"gpus_per_node": 2},)")) == "ok");
}

TEST_CASE("a group is split by ranks inside it, or kept together", "[scenarios][groups][fiber]") {
  CHECK(outcome(quartet(R"(
      {"split_group": [[0, 1], [2]], "group": "upper", "as": "part"},
      {"split_group": {"group": "upper"}, "as": "same"},
      {"if": "rank > 0", "do": [
        {"all_reduce": {"tensor": "t", "value": 1, "group": "part"}},
        {"all_reduce": {"tensor": "t", "group": "same"}}, {"check": "t", "value": 5}]})",
                        R"("communicators": "eager", "groups": {"upper": "1-3"},)")) == "ok");
}

TEST_CASE("groups of a mesh are named by its dimensions", "[scenarios][groups][fiber]") {
  const std::string mesh = R"("mesh": {"shape": [2, 2], "dim_names": ["dp", "tp"]},)";
  const Report report = run_text(quartet(R"({"print": "{dp} {tp}"},
      {"if": "rank != 3", "do": [{"barrier": {"group": "dp"}}]})",
                                         mesh));
  CHECK(lines(report) == std::vector<std::string>{"0: 0 0", "1: 0 1", "2: 1 0", "3: 1 1"});
  REQUIRE(finding_of(report.verdict) != nullptr);
  CHECK(finding_of(report.verdict)->at->call.group == "dp1");
  CHECK(finding_of(report.verdict)->culprits == RankSet{3});
  CHECK(outcome(quartet(R"({"barrier": {"group": "all"}}, {"barrier": {}})",
                        R"("mesh": {"shape": [4], "dim_names": ["all"]},)")) == "ok");
}

TEST_CASE("a leak is a finding only where that is asked for", "[scenarios][groups][fiber]") {
  const std::string program = R"({"if": "rank > 0", "do": [{"destroy_process_group": {}}]})";
  CHECK(outcome(quartet(program, R"("backend": "gloo",)")) == "ok");
  CHECK(outcome(quartet(program, R"("backend": "gloo", "check_leaks": true,)")) ==
        "resource_leak group_not_destroyed 0");
}

TEST_CASE("the store carries texts and numbers", "[scenarios][store][fiber]") {
  const Report report = run_text(quartet(R"(
      {"store_set": "id{rank}", "value": "{rank * 10}"},
      {"store_wait": ["id0", "id3"]}, {"store_get": "id{(rank + 1) % 4}", "as": "next"},
      {"store_add": "sum", "value": "next", "as": "so_far"}, {"barrier": {}},
      {"store_add": "sum", "value": 0, "as": "sum"},
      {"if": "rank == 0", "do": [{"print": "{next} {sum}"}, {"store_delete": "sum"}]})"));
  CHECK(lines(report) == std::vector<std::string>{"0: 10 60"});
  CHECK(outcome(quartet(R"({"store_get": "nobody"})")) == "deadlock store_never_served 0-3");
  CHECK(outcome(quartet(R"({"store_set": "k", "value": "old"}, {"barrier": {}},
      {"if": "rank == 2", "do": [{"store_get": "k", "want": "new"}]})")) == "wrong_result stale_key 2");
  CHECK(outcome(quartet(R"({"store_get": {"key": "nobody", "timeout": "1s"}})")) == "rank_failed raised 0-3");
}

TEST_CASE("the first rank to set a key that is missing leads", "[scenarios][store][fiber]") {
  const Report report = run_text(quartet(R"(
      {"store_compare_set": "leader", "desired_value": "{rank + 5}", "as": "first"}, {"barrier": {}},
      {"if": "rank == 3", "do": [
        {"store_compare_set": "leader", "expected_value": "7", "desired_value": "8", "as": "wrong"},
        {"store_compare_set": "leader", "expected_value": "5", "desired_value": "9", "as": "right"},
        {"print": "{first} {wrong} {right}"}]})"));
  CHECK(lines(report) == std::vector<std::string>{"3: 5 5 9"});
  CHECK(problem(quartet(R"({"store_compare_set": "k"})")).find("desired_value") != std::string::npos);
}

TEST_CASE("ranks whose key was not set in time have not crashed: the few that are elsewhere come first",
          "[scenarios][store][judge][fiber]") {
  const Report report = run_text(quartet(
      R"({"if": "rank != 2", "do": [{"store_wait": ["go"], "timeout": "5s"}]}, {"all_reduce": {"value": 1}})"));
  const Finding* finding = finding_of(report.verdict);
  REQUIRE(finding != nullptr);
  CHECK(finding->kind == FindingKind::store_cycle);
  CHECK(finding->culprits == RankSet{2});
  CHECK(confidence_in_blame(report.verdict) == Confidence::low);
  CHECK_THAT(finding->headline,
             Contains("ranks 0-1,3 waited in vain for a key of the store, and rank 2 waits"));
}

TEST_CASE("a group's own timeout makes its waiting ranks give up", "[scenarios][groups][fiber]") {
  CHECK(outcome(quartet(R"({"if": "rank == 0", "do": [{"compute": "5s"}]}, {"barrier": {"group": "hasty"}})",
                        R"("groups": {"hasty": {"ranks": "0-1", "timeout": "2s"}},)")) ==
        "race watchdog_timeout 0");
}

TEST_CASE("what is wrong with a statement about groups is said with its place", "[scenarios][groups]") {
  CHECK(problem(quartet(R"({"new_group": [0, 9]})")).find("/program/0/new_group") == 0);
  CHECK(problem(quartet(R"({"new_group": []})")) == "/program/0/new_group: a group needs at least one rank");
  CHECK(problem(quartet(R"({"new_group": {}, "as": "world"})")) ==
        "/program/0/as: the group \"world\" exists from the start; use another name");
  CHECK(problem(quartet(R"({"new_group": {}, "as": "pair"}, {"barrier": {"group": "pairs"}})")) ==
        "/program/1/barrier/group: unknown group \"pairs\"; the groups are pair, world -> pair");
  CHECK(problem(quartet(R"({"new_group": {}, "timeout": "0s"})")) ==
        "/program/0/timeout: must be longer than 0");
  CHECK(problem(quartet(R"({"store_set": "k"})")) == "/program/0: \"store_set\" needs \"value\"");
}

TEST_CASE("what is wrong with a mesh is said with its place", "[scenarios][groups]") {
  const auto mesh = [](const std::string& text) { return problem(quartet("", "\"mesh\": " + text + ",")); };
  CHECK(mesh(R"({"shape": [2, 3], "dim_names": ["dp", "tp"]})") ==
        "/mesh/shape: the mesh has 6 ranks, but the world has 4");
  CHECK(mesh(R"({"shape": [2, 2], "dim_names": ["dp"]})") ==
        "/mesh: a mesh needs a \"shape\" and the same number of \"dim_names\"");
  CHECK(mesh(R"({"shape": [2, 2], "dim_names": ["dp", "dp"]})") ==
        "/mesh/dim_names/1: the group \"dp\" already exists; use another name");
  CHECK(mesh(R"({"shape": [2, 2], "dim_names": ["dp", "rank"]})") ==
        "/mesh/dim_names/1: \"rank\" is a reserved name");
}

TEST_CASE("an expectation may name a group that a statement makes", "[scenarios][groups]") {
  const auto expecting = [](const std::string& group) {
    return quartet(R"({"new_subgroups": 2, "as": "pair"})",
                   R"("expect": {"verdict": "deadlock", "at": {"group": ")" + group + R"("}},)");
  };
  CHECK_NOTHROW(parse_scenario(expecting("pair1"), "test.json"));
  CHECK(problem(expecting("pear1")).find("/expect/at/group: unknown group \"pear1\"") == 0);
}

TEST_CASE("the names of 2.14 mean the collectives of older releases", "[scenarios][fiber]") {
  CHECK(lines(run_text(quartet(R"(
      {"all_gather_single": {"value": "rank", "output": "all"}},
      {"reduce_scatter_single": {"value": "rank", "output": "mine"}},
      {"gather_single": {"value": "rank", "output": "root"}, "dst": 2},
      {"print": "{all} {mine}"}, {"if": "rank == 2", "do": [{"print": "{root}"}]})"))) ==
        std::vector<std::string>{"0: [0, 1, 2, 3] 6", "1: [0, 1, 2, 3] 6", "2: [0, 1, 2, 3] 6",
                                 "2: [0, 1, 2, 3]", "3: [0, 1, 2, 3] 6"});
}

TEST_CASE("expectations take an operation by any of its names", "[scenarios][fiber]") {
  const Report report = run_text(quartet(R"({"all_gather_single": {"value": 1}},
      {"if": "rank > 0", "do": [{"reduce_scatter_single": {"value": 1}}]})",
                                         R"("expect": {"verdict": "deadlock", "culprits": [0],
                                            "at": {"op": "reduce_scatter_single", "seq": 1},
                                            "counts": {"0": {"all_gather_single": 1}}},)"));
  CHECK(report.expected == true);
}

TEST_CASE("a functional collective leaves its input alone, and its output is another tensor",
          "[scenarios][fiber]") {
  CHECK(lines(run_text(quartet(R"(
      {"fill": "t", "value": "rank", "numel": 4},
      {"funcol.all_reduce": "t", "output": "sum"}, {"funcol.all_gather_tensor": {"value": "rank", "output": "all"}},
      {"funcol.reduce_scatter_tensor": "t", "reduce_op": "MAX", "output": "part"},
      {"funcol.all_to_all_single": "t", "output": "theirs"}, {"funcol.broadcast": "t", "src": 2, "output": "two"},
      {"funcol.wait_tensor": "sum"},
      {"if": "rank == 1", "do": [{"print": "{t} {sum} {all} {part} {theirs} {two}"}]})"))) ==
        std::vector<std::string>{"1: [1, 1, 1, 1] [6, 6, 6, 6] [0, 1, 2, 3] 3 [0, 1, 2, 3] [2, 2, 2, 2]"});
}

TEST_CASE("a functional collective waits where its output is used first", "[scenarios][fiber]") {
  const Report report = run_text(quartet(R"(
      {"if": "rank > 0", "do": [{"funcol.all_reduce": {"value": 1, "output": "sum"}}]},
      {"print": "issued"},
      {"if": "rank == 1", "do": [{"add": "total", "tensor": "sum"}, {"print": "used"}]})",
                                         R"("backend": "gloo",)"));
  CHECK(lines(report) == std::vector<std::string>{"0: issued", "1: issued", "2: issued", "3: issued"});
  REQUIRE(finding_of(report.verdict) != nullptr);
  CHECK(verdict_word(report.verdict) == "deadlock");
  CHECK(finding_of(report.verdict)->culprits == RankSet{0});
}

}  // namespace rollcall::scenario::host_calls_test
