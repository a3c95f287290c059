// Whole scenarios on the simulator, from text to report.

#include "scenarios/run/runner.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::runner_test {
namespace {

Report run_text(const std::string& text, const RunOptions& options = {}) {
  return run(parse_scenario(text, "dir/test.json"), options);
}

const std::string tutorial = R"({
  "name": "the tutorial's counter", "world_size": 2, "backend": "gloo", "inputs": [5, 6],
  "objects": {"counter": {"kind": "joinable",
    "forward": [{"all_reduce": {"tensor": "t", "value": 1}}, {"add": "count", "tensor": "t"}],
    "main_hook": [{"all_reduce": {"value": 0}}],
    "post_hook": [{"if": "kwargs.sync_max_count", "do": [
      {"all_reduce": {"tensor": "common", "dtype": "int64", "value": "is_last_joiner ? rank : -1",
          "reduce_op": "MAX"}},
      {"item": "common", "as": "common_rank"},
      {"if": "rank == common_rank", "do": [{"copy": "max_count", "from": "count"}]},
      {"broadcast": "max_count", "src": "common_rank"}]}]}},
  "program": [
    {"fill": "count", "value": 0}, {"fill": "max_count", "value": 0},
    {"join": ["counter"], "kwargs": {"sync_max_count": true}, "do": [
      {"for_each_input": "x", "do": [{"forward": "counter"}]},
      {"print": "rank {rank} counted {count}"}]},
    {"print": "together {max_count}"}],
  "expect": {"prints": {"0": ["rank 0 counted 10", "together 11"], "1": ["rank 1 counted 11",
      "together 11"]}}})";

const std::string uneven = R"({"world_size": 4, "inputs": {"base": 5, "per_rank": 1},
  "program": [{"for_each_input": "x", "do": [{"all_reduce": {"numel": 4}}]}],
  "expect": {"verdict": "deadlock", "culprits": [0], "at": {"op": "all_reduce", "group": "world", "seq": 5,
             "waiting": "1-3", "missing": 0}}})";

}  // namespace

TEST_CASE("nan and inf are values of tensors, and what a scenario may expect of them", "[scenarios][fiber]") {
  const std::string text = R"({"world_size": 2, "program": [
    {"if": "rank == 1", "do": [{"all_reduce": {"tensor": "g", "value": "nan"}}],
     "else": [{"all_reduce": {"tensor": "g", "value": "-inf"}}]},
    {"all_reduce": {"tensor": "h", "numel": 2, "value": "inf", "reduce_op": "MAX"}}],
    "expect": {"values": {"0-1": {"g": "nan", "h": ["inf", "inf"]}}}})";
  const Scenario scenario = parse_scenario(text, "dir/test.json");
  const Report report = run(scenario);
  CHECK(verdict_word(report.verdict) == "ok");
  CHECK(unmet(scenario.expect, report).empty());
  CHECK(test::problem(R"({"world_size": 2, "program": [{"fill": "x", "value": 0}],
    "expect": {"values": {"0": {"x": "none"}}}})") ==
        R"(/expect/values/0/x: an element is a number, "nan", "inf" or "-inf")");
}

TEST_CASE("the tutorial's counter gives PyTorch's numbers", "[scenarios][fiber]") {
  const Report report = run_text(tutorial);
  CHECK(report.unmet == std::vector<std::string>{});
  CHECK(report.expected == true);
  CHECK(report.ops == 30);  // 15 of each rank, as torch issues
  CHECK(report.scenario == "the tutorial's counter");
}

TEST_CASE("uneven inputs without Join deadlock, and rank 0 is to blame", "[scenarios][fiber]") {
  const Report report = run_text(uneven);
  CHECK(report.unmet == std::vector<std::string>{});
  CHECK(verdict_word(report.verdict) == "deadlock");
  CHECK(report.of(0).inputs == 5);
}

TEST_CASE("a report carries the line that repeats it", "[scenarios][fiber]") {
  CHECK(run_text(uneven).replay == "rollcall run dir/test.json --seed 0");
  CHECK(run_text(uneven, {.seed = 7}).replay == "rollcall run dir/test.json --seed 7");
  CHECK(run_text(uneven, {.seed = 7}).seed == 7);
  const Report spaced = run(parse_scenario(uneven, "it's here.json"));
  CHECK(spaced.replay == "rollcall run 'it'\\''s here.json' --seed 0");
}

TEST_CASE("a timeline is recorded when asked for", "[scenarios][fiber]") {
  CHECK(run_text(uneven).timeline.spans().empty());
  CHECK_FALSE(run_text(uneven, {.timeline = true}).timeline.spans().empty());
}

TEST_CASE("an unexpected verdict says what was expected", "[scenarios][fiber]") {
  const Report report = run_text(test::quartet(R"({"if": "rank > 0", "do": [{"barrier": {}}]})"));
  CHECK(report.expected == false);
  CHECK(report.unmet == std::vector<std::string>{"verdict: expected ok, got deadlock"});
}

TEST_CASE("programs per rank run as written", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 3, "groups": {"pair": [0, 2]}, "programs": {
    "0,2": [{"all_reduce": {"tensor": "t", "value": "rank + 1", "group": "pair"}},
        {"print": "{t}"}], "1": []},
    "expect": {"prints": ["4", "4"]}})");
  CHECK(report.unmet == std::vector<std::string>{});
}

TEST_CASE("a rank outside the group gets None for an asynchronous call, as in torch", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 2, "backend": "gloo", "groups": {"last": [1]}, "program": [
    {"all_reduce": {"group": "last", "async_op": true, "as": "w"}},
    {"try": {"do": [{"wait": "w"}], "except": [{"print": "{error_type}: {error}"}]}}],
    "expect": {"prints": ["AttributeError: 'NoneType' object has no attribute 'wait'"]}})");
  CHECK(report.unmet == std::vector<std::string>{});
}

TEST_CASE("an endless loop is a verdict, not a hang", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 2, "limits": {"ops": 1000},
    "program": [{"repeat": 1000000000000000, "do": []}], "expect": {"verdict": "limit_reached"}})");
  CHECK(report.unmet == std::vector<std::string>{});
}

TEST_CASE("join in throwing mode throws on every rank", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 2, "backend": "gloo", "inputs": [1, 3],
    "objects": {"c": {"kind": "joinable", "forward": [{"barrier": {}}], "main_hook": [{"barrier": {}}]}},
    "program": [{"try": {
      "do": [{"join": ["c"], "throw_on_early_termination": true, "do": [
        {"for_each_input": "x", "do": [{"forward": "c"}]}]}],
      "except": [{"print": "{error_type}: {error}"}]}}],
    "expect": {"prints": {
      "0": ["RuntimeError: Rank 0 exhausted all inputs."],
      "1":
       ["RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks."]}}})");
  CHECK(report.unmet == std::vector<std::string>{});
}

TEST_CASE("nesting as deep as a file may go fits a rank's stack", "[scenarios][fiber]") {
  std::string deep = R"({"all_gather": {"value": "rank", "output": "o"}}, {"raise": "deep {o}"})";
  for (int i = 0; i < 8; ++i) {
    deep = R"({"try": {"do": [)" + deep + R"(], "except": [{"forward": "c"}, {"raise": "again {error}"}]}})";
  }
  const Report report = run_text(test::quartet(deep, R"("objects": {"c": {"kind": "joinable", "forward": [
    {"try": {"do": [{"all_reduce": {"value": "rank", "numel": 3}}, {"raise": "x"}], "except": []}}]}},
    "expect": {"verdict": "rank_failed"},)"));
  CHECK(report.unmet == std::vector<std::string>{});
  CHECK(report.of(0).exception.ends_with("again deep [0, 1, 2, 3]"));
}

// On Gloo, the root of a scatter is done when its parts have been taken, though others wait elsewhere. Once, the root
// completed the call again and again, until the machine's memory was full.
TEST_CASE("a thread that gets through a call while ranks are missing goes on once", "[scenarios][fiber]") {
  const Report report =
      run_text(R"({"world_size": 3, "backend": "gloo", "groups": {"some": [0, 1]}, "program": [
    {"if": "rank == 2", "do": [{"recv": {"numel": 1, "src": 0}}]},
    {"parallel": [[{"scatter": {"numel": 2, "value": 2}}], [{"all_reduce": {"group": "some", "numel": 1}}]]},
    {"if": "rank == 0", "do": [{"send": {"numel": 1, "dst": 2}}]}]})");
  CHECK(verdict_word(report.verdict) == "deadlock");
}

// On Gloo, a root sends to the ranks that have arrived, before all have. Once, a scatter that a repair inserted had no
// room for the data from the root, which was written into other memory.
TEST_CASE("a repair may put in a scatter on some ranks only", "[scenarios][repair][fiber]") {
  const Report report =
      run_text(R"({"world_size": 3, "backend": "gloo", "groups": {"some": [0, 1, 2]}, "program": [
    {"for": "i", "in": [0, "rank + 1"], "do": [{"all_reduce": {"numel": 4, "group": "some"}}]},
    {"scatter": {"numel": 64, "dtype": "float64", "value": 1}}]})");
  CHECK(verdict_word(report.verdict) == "deadlock");
}

TEST_CASE("the same scenario gives the same report twice", "[scenarios][fiber]") {
  const Report once = run_text(tutorial, {.timeline = true});
  const Report again = run_text(tutorial, {.timeline = true});
  CHECK(once.timeline.fingerprint() == again.timeline.fingerprint());
  CHECK(once.simulated_time == again.simulated_time);
}

TEST_CASE("a report has the lines of source it points at, where the file is at hand", "[fiber]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "rollcall-lines-of-source";
  std::filesystem::create_directories(folder);
  const std::string text =
      "{ \"world_size\": 2, \"program\": [\n"
      "  { \"if\": \"rank == 0\", \"do\": [\n"
      "      { \"barrier\": {} } ] } ] }\n";
  const std::filesystem::path file = folder / "lines.json";
  std::ofstream(file) << text;
  const Report report = run(parse_scenario(text, file.string()));
  REQUIRE(report.sources.size() == 1);
  CHECK(report.sources[0].site == "lines.json:3:7");
  CHECK(report.sources[0].path == file.string());
  CHECK(report.sources[0].text == "      { \"barrier\": {} } ] } ] }");
  CHECK(report.sources[0].column == 7);
  std::filesystem::remove_all(folder);
  CHECK(run(parse_scenario(text, file.string())).sources.empty());
}

TEST_CASE("a rank may die while its GPU runs a kernel", "[scenarios][fiber]") {
  const std::string dies = R"({"world_size": 2, "faults": [{"kind": "crash", "ranks": [1], "at": "1ms"}], )";
  CHECK(verdict_word(run_text(dies + R"("program": [{"kernel": "5ms"}]})").verdict) == "rank_failed");
  const Report missed = run_text(dies + R"("program": [{"kernel": "5ms"}, {"kernel": "5ms"},
      {"all_reduce": {"numel": 1}}, {"synchronize": true}]})");
  CHECK(finding_of(missed.verdict)->culprits == RankSet{1});
}

TEST_CASE("lists of tensors that are divided differently are neither mixed up nor a crash",
          "[scenarios][fiber]") {
  const std::string begin = R"({"world_size": 2, "program": [
      {"fill": "a", "numel": 2, "value": 1}, {"fill": "b", "numel": 2, "value": 10},
      {"fill": "c", "numel": 4, "value": 5},)";
  const Report lone = run_text(begin + R"({"if": "rank == 0", "do": [{"_coalescing_manager": [
      {"all_reduce": "a"}, {"all_reduce": "b"}]}], "else": [{"send": "a", "dst": 0}]}]})");
  CHECK(finding_of(lone.verdict) != nullptr);
  const Report packed = run_text(begin + R"({"if": "rank == 0", "do": [{"_coalescing_manager": [
      {"all_reduce": "a"}, {"all_reduce": "b"}]}], "else": [{"_coalescing_manager": [{"all_reduce": "c"}]}]}]})");
  CHECK(packed.world_size == 2);  // it has a verdict
}

TEST_CASE("what needs a group that was destroyed gets torch's error", "[scenarios][fiber]") {
  const std::string gloo = R"({"world_size": 2, "backend": "gloo", )";
  const Report saves = run_text(gloo + R"("program": [{"fill": "a", "numel": 4, "value": 1},
      {"destroy_process_group": {}}, {"dcp.save": ["a"], "checkpoint_id": "c"}]})");
  CHECK_THAT(finding_of(saves.verdict)->headline, Contains("Default process group has not been initialized"));
  const Report broadcasts = run_text(gloo + R"("program": [{"fill": "a", "numel": 4, "value": 1},
      {"new_group": {}, "as": "g"}, {"destroy_process_group": "g"}, {"broadcast": "a", "src": 0, "group": "g"}]})");
  CHECK_THAT(finding_of(broadcasts.verdict)->headline, Contains("Group g is not registered"));
  const Report joins = run_text(gloo + R"("inputs": [0, 1], "objects": {"j": {"kind": "joinable"}},
      "program": [{"join": ["j"], "do": [{"for_each_input": "x", "do": [{"destroy_process_group": {}}]}]}]})");
  CHECK(finding_of(joins.verdict) == nullptr);  // Join keeps its group
}

TEST_CASE("a rank that leaves the loop over its inputs has not run out of them", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 4, "inputs": 4, "program": [{"for_each_input": "x", "do": [
      {"if": "rank == 2 && x == 2", "do": [{"break": true}]}, {"all_reduce": {"numel": 3}}]}]})");
  CHECK(finding_of(report.verdict)->culprits == RankSet{2});
  CHECK(finding_of(report.verdict)->cause.find("inputs") == std::string::npos);
  const Report uneven_inputs = run_text(uneven);
  CHECK_THAT(finding_of(uneven_inputs.verdict)->cause, Contains("ran out of inputs"));
}

TEST_CASE("a parameter that the forward pass does not use gets no gradient", "[scenarios][fiber]") {
  const auto trains = [](const std::string& keys) {
    return run_text(R"({"world_size": 2, "inputs": 3, "objects": {"m": {"kind": "ddp", "parameters": [
        {"name": "a", "numel": 1000}, {"name": "b", "numel": 2000}])" +
                    keys + R"(}},
        "program": [{"for_each_input": "x", "do": [{"forward": "m", "unused": ["a"]}, {"backward": "m"}]}]})");
  };
  CHECK(finding_of(trains(R"(, "find_unused_parameters": true)").verdict) == nullptr);
  CHECK_THAT(finding_of(trains("").verdict)->cause + finding_of(trains("").verdict)->headline,
             Contains("finished reduction"));
}

}  // namespace rollcall::scenario::runner_test
