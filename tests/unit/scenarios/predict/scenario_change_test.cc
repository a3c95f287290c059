// Changes to a scenario: what each word changes, and what it does not.

#include "scenarios/predict/scenario_change.h"

#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/catch.h"

namespace rollcall::predict::scenario_change_test {
namespace {

using Tree = scenario::OrderedJson;

Tree changed(const std::string& text, const std::string& words) {
  return Tree::parse(changed_scenario(Tree::parse(text), words).text);
}

std::string problem(const std::string& text, const std::string& words) {
  try {
    changed(text, words);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

const std::string models = R"({"world_size": 4, "expect": {"verdict": "ok"}, "objects": {
  "d": {"kind": "ddp", "parameters": ["4MiB", 10, {"bytes": "1KiB", "dtype": "float64", "count": 2}],
        "bucket_cap_mb_list": [1]},
  "f": {"kind": "fully_shard", "units": [[10]]},
  "p": {"kind": "pipeline", "schedule": "GPipe", "microbatches": 4}},
  "program": [{"kernel": {"flops": 1e9, "dtype": "float32"}}, {"kernel": "1ms"},
              {"repeat": 2, "do": [{"kernel": {"bytes": 10}}, {"kernel": {"flops": 5, "kind": "reduction"}}]}]})";

}  // namespace

TEST_CASE("a bucket is DDP's, a number of microbatches a pipeline's", "[predict]") {
  const Tree tree = changed(models, "bucket=50MiB,microbatches=8,world_size=16");
  CHECK(tree["objects"]["d"]["bucket_cap"] == "50MiB");
  CHECK_FALSE(tree["objects"]["d"].contains("bucket_cap_mb_list"));
  CHECK(tree["objects"]["p"]["microbatches"] == 8);
  CHECK(tree["world_size"] == 16);
  CHECK_FALSE(tree.contains("expect"));  // it was for the unchanged scenario
}

TEST_CASE("another precision changes products and models, and no number of elements", "[predict]") {
  const Tree tree = changed(models, "precision=bfloat16");
  CHECK(tree["objects"]["d"]["parameters"] ==
        Tree::parse(R"([{"numel": 1048576, "dtype": "bfloat16"}, {"numel": 10, "dtype": "bfloat16"},
                        {"dtype": "bfloat16", "count": 2, "numel": 128}])"));
  CHECK(tree["objects"]["f"]["mp_policy"]["param_dtype"] == "bfloat16");
  CHECK(tree["program"][0]["kernel"]["dtype"] == "bfloat16");
  CHECK(tree["program"][1] == Tree::parse(R"({"kernel": "1ms"})"));
  CHECK(tree["program"][2] == Tree::parse(models)["program"][2]);
}

TEST_CASE("a slow rank is a fault: the last one, or the one that is named", "[predict]") {
  CHECK(changed(models, "slow=5%")["faults"] ==
        Tree::parse(R"([{"kind": "slow", "ranks": "3", "factor": 1.05}])"));
  CHECK(changed(models, "slow=1:50%,world_size=2")["faults"][0]["ranks"] == "1");
  CHECK(changed_scenario(Tree::parse(models), "slow=5%").slows_rank);
  CHECK(changed_scenario(Tree::parse(models), "cluster=h200-8").cluster == "h200-8");
}

TEST_CASE("a change that changes nothing is refused, with the reason", "[predict]") {
  const std::string empty = R"({"world_size": 2, "program": []})";
  CHECK_THAT(problem(empty, "bucket=1MiB"), Contains("objects of kind ddp"));
  CHECK_THAT(problem(empty, "microbatches=2"), Contains("objects of kind pipeline"));
  CHECK_THAT(problem(empty, "precision=bfloat16"), Contains("there is none"));
  CHECK_THAT(problem(empty, "precision=int4"), StartsWith("precision= takes one of"));
  CHECK_THAT(problem(empty, "slow=2:5%"), Contains("ranks are 0 to 1"));
  CHECK_THAT(problem(empty, "world_size=many"), Contains("takes a whole number"));
  CHECK_THAT(problem(empty, "buket=1MiB"), Contains("did you mean 'bucket='"));
  CHECK_THAT(problem(empty, "slow"), Contains("unknown 'slow'"));
}

}  // namespace rollcall::predict::scenario_change_test
