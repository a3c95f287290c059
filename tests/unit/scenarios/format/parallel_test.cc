// Pipelines, tensor parallel, context parallel and meshes in scenarios: their errors, and their calls.

#include <map>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::parallel_test {
namespace {

using test::problem;
using test::quartet;

std::string with_objects(const std::string& objects, const std::string& program = "") {
  return quartet(program, "\"objects\": {" + objects + "}, ");
}

std::string verdict_of(const std::string& text) {
  return std::string(verdict_word(run(parse_scenario(text, "test.json"), {}).verdict));
}

}  // namespace

TEST_CASE("a pipeline says how many microbatches it has", "[scenarios]") {
  CHECK(problem(with_objects(R"("p": {"kind": "pipeline"})")) ==
        "/objects/p: a pipeline needs \"microbatches\", such as 8");
}

TEST_CASE("what a schedule does not take is wrong with the file", "[scenarios]") {
  CHECK(problem(with_objects(R"("p": {"kind": "pipeline", "microbatches": 3})")) ==
        "/objects/p: Number of microbatches (3) must be greater than or equal to the number of stages (4).");
  CHECK(
      problem(with_objects(R"("p": {"kind": "pipeline", "schedule": "DualPipeV", "microbatches": 7})")) ==
      "/objects/p: DualPipeV requires at least as many microbatches as stages, but got 7 microbatches and 8 "
      "stages.");
}

TEST_CASE("the group of a pipeline exists from the start", "[scenarios]") {
  CHECK(problem(
            with_objects(R"("p": {"kind": "pipeline", "schedule": "GPipe", "microbatches": 1, "group": "g"})",
                         R"({"new_group": [0, 1], "as": "g"})")) ==
        "/objects/p/group: the group \"g\" is made by the program; \"groups\" or \"mesh\" must define the "
        "group of a pipeline");
}

TEST_CASE("a pipeline steps, and does not forward", "[scenarios]") {
  CHECK(problem(with_objects(R"("p": {"kind": "pipeline", "microbatches": 4})", R"({"forward": "p"})")) ==
        "/program/0/forward: \"forward\" does not fit a pipeline, which has \"step\" and \"eval\"");
}

TEST_CASE("a hybrid strategy has two groups, and a release that knows it", "[scenarios]") {
  const std::string units = R"("kind": "fsdp", "units": [[4]], "strategy": )";
  const std::string both = R"("HYBRID_SHARD", "group": "g", "replicate_group": "h")";
  const auto model = [&](const std::string& keys, const std::string& torch = "") {
    return problem(quartet("", R"("groups": {"g": [0, 1], "h": [0, 2]}, )" + torch + R"("objects": {"m": {)" +
                                   units + keys + "}}, "));
  };
  CHECK(model(R"("HYBRID_SHARD", "group": "g")") ==
        "/objects/m/strategy: a hybrid strategy shards inside \"group\" and replicates across "
        "\"replicate_group\": it needs both");
  CHECK(model(R"("FULL_SHARD", "group": "g", "replicate_group": "h")") ==
        "/objects/m/replicate_group: only \"strategy\": \"HYBRID_SHARD\" has replicas");
  CHECK(model(both, R"("torch": "1.13", )") ==
        "/objects/m/strategy: PyTorch 1.13 has no ShardingStrategy.HYBRID_SHARD; 2.14 has it");
}

TEST_CASE("a _coalescing_manager takes plain calls of three kinds", "[scenarios]") {
  const auto calls = [](const std::string& list) {
    return problem(quartet(R"({"_coalescing_manager": [)" + list + "]}", ""));
  };
  CHECK(calls(R"({"broadcast": {"src": 0}})") ==
        "/program/0/_coalescing_manager/0: a _coalescing_manager takes all_reduce, all_gather_into_tensor or "
        "reduce_scatter_tensor: put other calls before or behind it");
  CHECK(
      calls(R"({"all_reduce": {"async_op": true}})") ==
      "/program/0/_coalescing_manager/0/all_reduce/async_op: a _coalescing_manager has one \"async_ops\" for "
      "all its calls: put it next to \"_coalescing_manager\"");
}

TEST_CASE("a checkpoint has a folder, and things that can be saved", "[scenarios]") {
  CHECK(problem(quartet(R"({"dcp.save": ["a"], "checkpoint_id": "s"})", "")) ==
        "/program/0/dcp.save/0: unknown tensor \"a\"; create it with {\"fill\": \"a\", \"value\": 0} or give "
        "the call a value or numel");
  CHECK(problem(quartet(R"({"fill": "a", "value": 1}, {"dcp.load": "a"})", "")) ==
        "/program/1: \"dcp.load\" needs \"checkpoint_id\"");
  CHECK(problem(with_objects(R"("p": {"kind": "pipeline", "microbatches": 4})",
                             R"({"dcp.save": "p", "checkpoint_id": "s"})")) ==
        "/program/0/dcp.save: \"p\" has no state to save: models of kind ddp, fsdp and fully_shard have");
}

TEST_CASE("styles and placements of parallel modules are checked", "[scenarios]") {
  CHECK(problem(with_objects(R"("m": {"kind": "tensor_parallel", "modules": ["ColwiseParalel"]})")) ==
        "/objects/m/modules/0: unknown style \"ColwiseParalel\"; the styles are ColwiseParallel, "
        "RowwiseParallel, SequenceParallel, PrepareModuleInput, PrepareModuleOutput -> ColwiseParallel");
  CHECK(problem(with_objects(
            R"x("m": {"kind": "tensor_parallel", "modules": [
              {"style": "RowwiseParallel", "output_layouts": "Shrad(1)"}]})x")) ==
        "/objects/m/modules/0/output_layouts: \"Shrad(1)\" is not a placement; write \"Shard(0)\", "
        "\"Replicate()\" or \"Partial()\"");
}

TEST_CASE("a mesh has as many ranks as the world", "[scenarios]") {
  const auto mesh = [](const std::string& shape) {
    return problem(quartet("", R"("mesh": {"shape": )" + shape + R"(, "dim_names": ["dp", "tp"]}, )"));
  };
  CHECK(mesh("[2, 3]") == "/mesh/shape: the mesh has 6 ranks, but the world has 4");
  CHECK(mesh("[65536, 65536]") == "/mesh/shape: the mesh has at least 1000001 ranks, but the world has 4");
}

TEST_CASE("a flattened dimension has dimensions of its mesh, in their order", "[scenarios]") {
  const auto mesh = [](const std::string& flatten) {
    return problem(
        quartet("", R"("mesh": {"shape": [2, 2], "dim_names": ["dp", "tp"], "flatten": )" + flatten + "}, "));
  };
  CHECK(mesh(R"({"all": ["dp", "pt"]})") == "/mesh/flatten/all/1: the mesh has no dimension \"pt\" -> tp");
  CHECK(mesh(R"({"all": ["tp", "dp"]})") ==
        "/mesh/flatten/all: name the dimensions in the order in which the mesh has them");
  CHECK(mesh(R"({"tp": ["dp", "tp"]})") ==
        "/mesh/flatten/tp: the group \"tp\" already exists; use another name");
}

TEST_CASE("a step of a pipeline sends every microbatch forth and back", "[scenarios][fiber]") {
  CHECK(verdict_of(with_objects(R"("p": {"kind": "pipeline", "schedule": "Interleaved1F1B", "stages": 2,
    "microbatches": 8})",
                                R"({"step": "p"}, {"step": "p"}, {"eval": "p"})")) == "ok");
}

TEST_CASE("ranks that make a mesh have a group along every dimension", "[scenarios][fiber]") {
  const std::string program = R"x(
    {"init_device_mesh": [2, 2], "mesh_dim_names": ["dp", "tp"], "flatten": {"all": ["dp", "tp"]}},
    {"all_reduce": {"tensor": "a", "value": "rank", "group": "dp"}}, {"check": "a", "value": "2 + 2 * (rank % 2)"},
    {"all_reduce": {"tensor": "b", "value": "rank", "group": "all"}}, {"check": "b", "value": 6})x";
  CHECK(verdict_of(quartet(program)) == "ok");
}

}  // namespace rollcall::scenario::parallel_test
