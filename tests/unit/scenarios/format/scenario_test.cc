// The header of a scenario file: its meaning, and the errors in bad ones.

#include "scenarios/format/scenario.h"

#include <string>
#include <vector>

#include "sim/engine/start_order.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::scenario_test {
namespace {

using test::problem;
using test::problems;

Scenario parse(const std::string& text) { return parse_scenario(text, "dir/test.json"); }

std::string world_of_four(const std::string& more) {
  return R"({"world_size": 4, "program": [], )" + more + "}";
}

}  // namespace

TEST_CASE("a scenario needs little", "[scenarios]") {
  const Scenario scenario = parse(R"({"world_size": 4, "program": []})");
  CHECK(scenario.name == "test.json");
  CHECK(scenario.file == "dir/test.json");
  CHECK(scenario.options.world_size == 4);
  CHECK(scenario.options.seed == 0);
  CHECK(scenario.options.backend == "nccl");
  CHECK(scenario.options.devices.empty());
  CHECK(scenario.options.ranks_per_host == 8);
  CHECK(scenario.options.limits.ops == 100'000'000);
  CHECK(scenario.expect == Expectation{});
}

TEST_CASE("every key of the header is read", "[scenarios]") {
  const Scenario scenario = parse(R"(
    // comments are fine
    { "$schema": "./scenario-v1.schema.json", "version": 1, "name": "n", "source": "s", "world_size": 4,
        "seed": 7,
      "backend": "gloo", "debug": "DETAIL", "timeout": "10s", "limits": {"simulated_time": "1h", "ops": 1000},
      "groups": {"evens": [0, 2], "all": "0-3"}, "cluster": {"gpus_per_node": 2, "nodes": 2}, "program": [],
      "expect": {"verdict": "deadlock", "kind": "missing_participant", "culprits": 0,
                 "at": {"op": "barrier", "group": "evens", "seq": 5, "waiting": "2", "missing": [0]},
                 "prints": {"0-1": ["a"], "2": []}} })");
  CHECK(scenario.name == "n");
  CHECK(scenario.source == "s");
  CHECK(scenario.options.seed == 7);
  CHECK(scenario.options.backend == "gloo");
  CHECK(scenario.options.debug == sim::DebugLevel::detail);
  CHECK(scenario.options.timeout == 10 * second);
  CHECK(scenario.options.limits.simulated_time == 3600 * second);
  CHECK(scenario.options.limits.ops == 1000);
  CHECK(scenario.options.ranks_per_host == 2);
  CHECK(scenario.local_rank(3) == 1);
  REQUIRE(scenario.options.groups.size() == 2);
  CHECK(scenario.options.groups[0].name == "evens");
  CHECK(scenario.options.groups[0].ranks == std::vector<Rank>{0, 2});
  CHECK(scenario.options.groups[1].ranks == std::vector<Rank>{0, 1, 2, 3});
  CHECK(scenario.expect.verdict == "deadlock");
  CHECK(scenario.expect.kind == FindingKind::missing_participant);
  CHECK(scenario.expect.culprits == RankSet{0});
  CHECK(scenario.expect.at == Expectation::At{"barrier", "evens", 5, RankSet{2}, RankSet{0}});
  CHECK(scenario.expect.prints == std::vector<Expectation::Prints>{{RankSet{0, 1}, {"a"}}, {RankSet{2}, {}}});
}

TEST_CASE("inputs are a number, a list or a rule", "[scenarios]") {
  CHECK(parse(world_of_four(R"("inputs": 5)")).inputs.of(3) == 5);
  CHECK(parse(world_of_four(R"("inputs": [5, 6, 7, 8])")).inputs.of(3) == 8);
  CHECK(parse(world_of_four(R"("inputs": {"base": 5, "per_rank": 2})")).inputs.of(3) == 11);
  CHECK(problem(world_of_four(R"("inputs": [5, 6])")) ==
        "/inputs: expected a number of inputs for each of 4 ranks, found 2");
  CHECK(problem(world_of_four(R"("inputs": -1)")) == "/inputs: must be at least 0");
  CHECK(problem(world_of_four(R"("inputs": [1, 2, -3, 4])")) == "/inputs/2: must be at least 0");
  CHECK(problem(world_of_four(R"("inputs": {"base": 2, "per_rank": -1})")) ==
        "/inputs: rank 3 would have a negative or too large number of inputs");
}

TEST_CASE("devices are a template with exceptions", "[scenarios]") {
  const auto devices = [](const std::string& more) { return parse(world_of_four(more)).options.devices; };
  const Device cuda0{DeviceType::cuda, 0};
  const Device cuda1{DeviceType::cuda, 1};
  CHECK(devices(R"("device": "cuda:{local_rank}")").empty());  // the engine's own default
  CHECK(devices(R"("device": "cpu", "backend": "gloo")").empty());
  CHECK(devices(R"("device": "cpu")") == std::vector<Device>(4, cpu_device));
  CHECK(devices(R"("device": "cuda:{rank}", "cluster": {"gpus_per_node": 2})") ==
        std::vector<Device>{cuda0, cuda1, {DeviceType::cuda, 2}, {DeviceType::cuda, 3}});
  CHECK(devices(R"("devices": {"0": "cpu"}, "cluster": {"gpus_per_node": 2})") ==
        std::vector<Device>{cpu_device, cuda1, cuda0, cuda1});
  CHECK(problem(world_of_four(R"("device": "gpu")")) ==
        "/device: \"gpu\" is not a device; devices are \"cpu\", \"cuda:0\" and \"cuda:{local_rank}\"");
  CHECK(problem(world_of_four(R"("devices": {"0-1": "cpu", "1": "cpu"})")) ==
        "/devices/1: some of these ranks already have a device");
  CHECK(problem(world_of_four(R"("devices": {"4": "cpu"})")) ==
        "/devices/4: rank 4 is out of range: ranks are 0 to 3");
  CHECK(problem(R"({"world_size": 40000, "program": [], "device": "cuda:{rank}"})").find("40000 devices") !=
        std::string::npos);
}

TEST_CASE("without a word about hosts, eight ranks share one", "[scenarios]") {
  const Scenario nine = parse(R"({"world_size": 9, "program": []})");
  CHECK(nine.local_rank(7) == 7);
  CHECK(nine.local_rank(8) == 0);
  // The engine's own devices and a template give the same result, whatever the world size.
  const Scenario large = parse(
      R"({"world_size": 100000, "program": [], "devices": {"0": "cpu"}, "device": "cuda:{local_rank}"})");
  CHECK(large.options.devices[99'999] == Device{DeviceType::cuda, 7});
  CHECK(sim::device_of_rank(nine.options, 8) == Device{DeviceType::cuda, 0});
  CHECK(sim::host_of_rank(nine.options, 8) == 1);
}

TEST_CASE("clusters and hosts say how many ranks share a host", "[scenarios]") {
  CHECK(parse(R"({"world_size": 16, "program": [], "cluster": "h100-8"})").options.ranks_per_host == 8);
  CHECK(parse(world_of_four(R"("hosts": {"a": "0-1", "b": [2, 3]})")).options.ranks_per_host == 2);
  CHECK(parse(world_of_four(R"("hosts": {"a": "0-2", "b": 3})")).options.ranks_per_host == 3);
  CHECK(problem(world_of_four(R"("cluster": "h100-9")")) ==
        "/cluster: 9 GPUs do not fill machines of 8; write NODESxGPUS -> h100-2x8");
  CHECK(problem(world_of_four(R"("cluster": "h10-8")"))
            .starts_with("/cluster: unknown cluster \"h10-8\"; the presets"));
  CHECK(problem(world_of_four(R"("cluster": "h10-8")")).ends_with("-> h100-8"));
  CHECK(problem(world_of_four(R"("cluster": {"gpus_per_node": 2, "nodes": 1})")) ==
        "/cluster/nodes: 4 ranks need 2 nodes of 2 GPUs");
  CHECK(problem(world_of_four(R"("cluster": {"nodes": 1})")) == "/cluster: \"gpus_per_node\" is missing");
  CHECK(problem(world_of_four(R"("cluster": {"gpus_per_node": 1025})")) ==
        "/cluster/gpus_per_node: must be at most 1024");
  CHECK(problem(R"({"world_size": 2000, "program": [], "hosts": {"a": "0-1999"}})") ==
        "/hosts: a host holds at most 1024 ranks");
  const Scenario mixed = parse(world_of_four(R"("hosts": {"a": [0, 2], "b": [1, 3]})"));
  CHECK(mixed.local_rank(2) == 1);
  CHECK(sim::host_of_rank(mixed.options, 3) == 1);
  CHECK(sim::device_of_rank(mixed.options, 3) == Device{DeviceType::cuda, 1});
  CHECK(problem(world_of_four(R"("hosts": {"a": [0, 1, 2], "b": [1, 3]})")) ==
        "/hosts/b: rank 1 has two hosts");
  CHECK(problem(world_of_four(R"("hosts": {"a": [0, 1]})")) == "/hosts: rank 2 has no host");
}

TEST_CASE("a cluster's nodes are the hosts that a scenario names", "[scenarios]") {
  const Scenario split = parse(world_of_four(R"("hosts": {"a": [0, 3], "b": [1, 2]}, "cluster": "h100-8")"));
  REQUIRE(split.options.cluster);
  CHECK(sim::host_of_rank(split.options, 3) == 0);
  CHECK(split.local_rank(3) == 1);
  CHECK(problem(world_of_four(R"("hosts": {"a": "0-2", "b": 3}, "cluster": {"gpus_per_node": 2})")) ==
        "/hosts: a host has 3 ranks, and a node of the cluster 2 GPUs");
  CHECK(problem(world_of_four(
            R"("hosts": {"a": "0-1", "b": "2-3"}, "cluster": {"gpus_per_node": 2, "nodes": 1})")) ==
        "/cluster/nodes: 2 hosts need 2 nodes");
}

TEST_CASE("worlds of impossible size are refused", "[scenarios]") {
  const auto size = [](const std::string& text) {
    return problem(R"({"program": [], "world_size": )" + text + "}");
  };
  CHECK(size("0") == "/world_size: must be at least 1");
  CHECK(size("-4") == "/world_size: must be at least 1");
  CHECK(size("1000001") == "/world_size: must be at most 1000000");
  CHECK(size("\"4\"") == "/world_size: expected an integer such as 4, found a string");
  CHECK(size("4.5") == "/world_size: expected an integer such as 4, found a floating-point number");
  CHECK(size("1e9") == "/world_size: expected an integer such as 4, found a floating-point number");
  CHECK(size("99999999999999999999") == "/world_size: this integer does not fit in 64 bits");
  CHECK(problem(R"({"program": []})") == "\"world_size\" is missing");
}

TEST_CASE("groups have known ranks and names of their own", "[scenarios]") {
  CHECK(problem(world_of_four(R"("groups": {"a": [0, 4]})")) ==
        "/groups/a/1: rank 4 is out of range: ranks are 0 to 3");
  CHECK(problem(world_of_four(R"("groups": {"a": []})")) == "/groups/a: a group needs at least one rank");
  CHECK(problem(world_of_four(R"("groups": {"a": [0, 0]})")) == "/groups/a: rank 0 is named twice");
  CHECK(problem(world_of_four(R"("groups": {"world": [0]})")) ==
        "/groups/world: the group \"world\" always exists; use another name");
}

TEST_CASE("programs per rank set cover every rank once", "[scenarios]") {
  const Scenario scenario = parse(
      R"({"world_size": 4, "programs": {"1-3": [{"barrier": {}}], "0": [{"barrier": {}},
          {"barrier": {}}]}})");
  CHECK(scenario.block_of(0).end - scenario.block_of(0).begin == 2);
  CHECK(scenario.block_of(3).end - scenario.block_of(3).begin == 1);
  const auto wrong = [](const std::string& text) { return problem(R"({"world_size": 4, )" + text + "}"); };
  CHECK(wrong(R"("programs": {"0-2": []})") ==
        "/programs: rank 3 has no program; every rank needs one, and [] is an empty one");
  CHECK(wrong(R"("programs": {"0-2": [], "2,3": []})") == "/programs/2,3: rank 2 already has a program");
  CHECK(wrong(R"("programs": {"0-4": []})") == "/programs/0-4: rank 4 is out of range: ranks are 0 to 3");
  CHECK(wrong(R"("programs": {"0-3": []}, "program": [])") ==
        "/programs: give either \"program\" or \"programs\"");
  CHECK(wrong(R"("seed": 1)") == "\"program\" is missing");
  CHECK(wrong(R"("program": {})") == "/program: expected an array, found an object");
}

TEST_CASE("unknown keys are errors with the nearest known one", "[scenarios]") {
  CHECK(problem(world_of_four(R"("sede": 1)")) == "/sede: unknown key \"sede\" -> seed");
  CHECK(problem(world_of_four(R"("limits": {"op": 1})")) == "/limits/op: unknown key \"op\" -> ops");
  CHECK(problem(world_of_four(R"("expect": {"at": {"sequence": 1}})")) ==
        "/expect/at/sequence: unknown key \"sequence\"");
  CHECK(problem(world_of_four(R"("backend": "ncll")")) == "/backend: expected one of nccl, gloo -> nccl");
  CHECK(problem(world_of_four(R"("expect": {"verdict": "dedlock"})")).ends_with("-> deadlock"));
  CHECK(problem(world_of_four(R"("objects": {"c": {"kind": "joinabel"}})")) ==
        "/objects/c/kind: expected one of joinable, ddp, fsdp, fully_shard, dp, zero, optimizer, pipeline, "
        "tensor_parallel, context_parallel -> joinable");
  CHECK(problem(world_of_four(R"("objects": {"c": {"kind": "joinable", "foward": []}})")) ==
        "/objects/c/foward: unknown key \"foward\" -> forward");
}

TEST_CASE("bare numbers where a unit is due are refused", "[scenarios]") {
  CHECK(problem(world_of_four(R"("timeout": 5)")) == "/timeout: a duration needs a unit, such as \"5ms\"");
  CHECK(problem(world_of_four(R"("timeout": "5")")) == "/timeout: a duration needs a unit, such as \"5ms\"");
  CHECK(problem(world_of_four(R"("limits": {"simulated_time": 1.5})")) ==
        "/limits/simulated_time: a duration needs a unit, such as \"5ms\"");
}

TEST_CASE("limits and timeouts of no length are refused", "[scenarios]") {
  CHECK(problem(world_of_four(R"("timeout": "0s")")) == "/timeout: must be longer than 0");
  CHECK(problem(world_of_four(R"("limits": {"simulated_time": "0ns"})")) ==
        "/limits/simulated_time: must be longer than 0");
  CHECK(problem(world_of_four(R"("limits": {"ops": 0})")) == "/limits/ops: must be at least 1");
}

TEST_CASE("an expectation that no report can meet is refused", "[scenarios]") {
  const auto expecting = [](const std::string& what) {
    return problem(world_of_four(R"("groups": {"evens": [0, 2]}, "expect": {)" + what + "}"));
  };
  CHECK(expecting(R"("kind": "missing_participnt")") ==
        "/expect/kind: unknown kind \"missing_participnt\"; `rollcall explain` lists them -> "
        "missing_participant");
  CHECK(expecting(R"("kind": "store_circle")") == "0 problems: ");  // an older name
  CHECK(expecting(R"("at": {"group": "evns"})") == "/expect/at/group: unknown group \"evns\" -> evens");
  CHECK(expecting(R"("at": {"op": "al_reduce"})") ==
        "/expect/at/op: unknown operation \"al_reduce\" -> all_reduce");
}

TEST_CASE("what a scenario expects of tensors, calls and costs is checked when it is read", "[scenarios]") {
  const auto expecting = [](const std::string& what) {
    return problem(world_of_four(R"("expect": {)" + what + "}"));
  };
  CHECK(expecting(R"("values": {"0": {"nothing": 1}})") ==
        "/expect/values/0/nothing: unknown tensor \"nothing\"");
  CHECK(expecting(R"("values": {"4": {}})").starts_with("/expect/values/4: "));
  CHECK(expecting(R"("counts": {"al_reduce": 1})") ==
        "/expect/counts/al_reduce: unknown operation \"al_reduce\" -> all_reduce");
  CHECK(expecting(R"("counts": {"0-9": {"barrier": 1}})").starts_with("/expect/counts/0-9: "));
  CHECK(expecting(R"("counts": {"store_get": 1})") ==
        "/expect/counts/store_get: calls of store_get are not counted, because they move no data");
  CHECK(expecting(R"("at_most": {"simulated_time": 5})") ==
        "/expect/at_most/simulated_time: a duration needs a unit, such as \"5ms\"");
  CHECK(expecting(R"("at_most": {"shadows": 5})").starts_with("/expect/at_most/shadows: unknown key"));
}

TEST_CASE("a matrix varies fields and sets variables", "[scenarios]") {
  const auto problem_of = [](const std::string& matrix) {
    return problem(R"({"world_size": 2, "matrix": {)" + matrix + R"(}, "program": [{"barrier": {}}]})");
  };
  CHECK(problem_of("") == "/matrix: must not be empty");
  CHECK(problem_of(R"("seed": [])") == "/matrix/seed: must not be empty");
  CHECK(problem_of(R"("n": [1, 2, 1])") == "/matrix/n/2: \"n\" has this value already");
  CHECK(problem_of(R"("name": ["a"])") == "/matrix/name: a matrix cannot vary \"name\"");
  CHECK(problem_of(R"("wrld_size": [2])") ==
        "/matrix/wrld_size: \"wrld_size\" is not a scenario field, but too similar to one to be a variable "
        "-> world_size");
  CHECK(problem_of(R"("n": ["a"])") == "/matrix/n/0: \"n\" is a variable, and variables are integers");
  CHECK(problem_of(R"("rank": [1])") ==
        "/matrix/rank: \"rank\" is neither a scenario field nor a valid variable name");
  const std::string text = R"({"matrix": {"world_size": [2, 4], "n": [1, 3]},
      "program": [{"all_reduce": {"numel": "n"}}], "expect": {"verdict": "ok"}})";
  Overrides overrides;
  overrides.selection = "[world_size=4,n=3]";
  const Scenario scenario = parse_scenario(text, "m.json", overrides);
  CHECK(scenario.options.world_size == 4);
  CHECK(scenario.name == "m.json[world_size=4,n=3]");
  CHECK(scenario.address() == "m.json::[world_size=4,n=3]");
  overrides.selection = "[world_size=8]";
  CHECK_THROWS_AS(parse_scenario(text, "m.json", overrides), InvalidScenario);
}

TEST_CASE("what only later versions can run is refused by name", "[scenarios]") {
  CHECK(problem(world_of_four(R"("objects": {"model": {"kind": "module", "bucket_cap": "25MiB"}})")) ==
        "/objects/model/kind: objects of kind \"module\" are not supported by this version");
  CHECK(problem(R"({"version": 2, "whatever": true})") ==
        "/version: version 2 is newer than this program, which reads version 1");
}

TEST_CASE("several errors are told at once", "[scenarios]") {
  const auto found = problems(world_of_four(
      R"("seed": -1, "sourec": "x", "groups": {"a": true}, "expect": {"kind": 5}, "timeout": 3)"));
  CHECK(found == std::vector<std::string>{
                     "/seed: must be at least 0", "/sourec: unknown key \"sourec\" -> source",
                     "/groups/a: expected an integer, an array, a string or an object, found a boolean",
                     "/expect/kind: expected a string such as \"missing_participant\", found an integer",
                     "/timeout: a duration needs a unit, such as \"5ms\""});
  CHECK(problems("[1]") == std::vector<std::string>{"expected an object, found an array"});
}

}  // namespace rollcall::scenario::scenario_test
