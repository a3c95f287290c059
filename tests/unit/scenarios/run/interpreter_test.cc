// What statements do, in a world of one rank and without an engine.

#include "scenarios/run/interpreter.h"

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"
#include "tests/unit/scenarios/format/solo_rank.h"

namespace rollcall::scenario::interpreter_test {
namespace {

using test::solo;
using test::SoloRank;
using Lines = std::vector<std::string>;

// Returns the output of a program of one rank.
Lines printed(const std::string& statements, const std::string& more = "") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(solo(statements, more), "dir/solo.json");
  RunState state;
  run_rank(scenario, 0, state);
  return rank.printed;
}

// Returns the exception that it raises, as "Type: message".
std::string raised(const std::string& statements) {
  SoloRank rank;
  const Scenario scenario = parse_scenario(solo(statements), "solo.json");
  try {
    RunState state;
    run_rank(scenario, 0, state);
  } catch (const Error& error) {
    return std::string(error.type()) + ": " + error.what();
  }
  return "nothing";
}

// Returns the ops that a program issues.
Lines issued(const std::string& statements, const std::string& more = "") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(solo(statements, more), "solo.json");
  RunState state;
  run_rank(scenario, 0, state);
  Lines ops;
  for (std::size_t i = 0; i < rank.issued.size(); ++i) {
    ops.push_back(describe(rank.issued[i]) + (rank.labels[i].empty() ? "" : " in " + rank.labels[i]));
  }
  return ops;
}

const std::string counter = R"("objects": {"counter": {"kind": "joinable",
  "forward": [{"all_reduce": {"tensor": "t", "value": 1}}, {"add": "count", "tensor": "t"}],
  "main_hook": [{"all_reduce": {"value": 0}}],
  "post_hook": [{"print": "last {is_last_joiner}, sync {kwargs.sync}, other {kwargs.other}"}]}},)";

}  // namespace

TEST_CASE("text has holes for numbers and tensors", "[scenarios]") {
  CHECK(
      printed(R"({"fill": "t", "value": 2.5}, {"print": "{rank}/{world_size} {{t}} = {t}, {1 + 2 * 3}"})") ==
      Lines{"0/1 {t} = 2.5, 7"});
  CHECK(printed(R"({"print": ""})") == Lines{""});
}

TEST_CASE("tensors are filled, added, copied, read and checked", "[scenarios]") {
  CHECK(printed(
            R"({"fill": "a", "value": 2, "numel": 3}, {"add": "sum", "tensor": "a"},
              {"add": "sum", "tensor": "a"},
                   {"copy": "b", "from": "sum"}, {"add": "sum", "value": 0.5}, {"check": "b", "value": 4},
                   {"print": "{sum} {b}"})") == Lines{"[4.5, 4.5, 4.5] [4, 4, 4]"});
  CHECK(printed(R"({"fill": "n", "value": "9007199254740992 + 1", "dtype": "int64"}, {"item": "n", "as": "v"},
                   {"print": "{v - 1} {n}"})") == Lines{"9007199254740992 9007199254740993"});
  CHECK(printed(R"({"fill": "m", "value": 1, "shape": [2, 2], "dtype": "bool"}, {"print": "{m}"})") ==
        Lines{"[True, True, True, True]"});
}

TEST_CASE("a name that nothing has made yet raises as in Python", "[scenarios]") {
  CHECK(raised(R"({"if": "rank == 1", "do": [{"fill": "t", "value": 1}]}, {"all_reduce": "t"})") ==
        "NameError: name 't' is not defined");
  CHECK(raised(R"({"if": "rank == 1", "do": [{"fill": "t", "value": 1}]}, {"print": "{t}"})") ==
        "NameError: name 't' is not defined");
  CHECK(raised(R"({"print": "{v}"}, {"fill": "t", "value": 1}, {"item": "t", "as": "v"})") ==
        "NameError: name 'v' is not defined");
}

TEST_CASE("what a tensor cannot do raises in the rank", "[scenarios]") {
  CHECK(raised(R"({"fill": "t", "value": 1.5}, {"check": "t", "value": 2})") ==
        "CheckFailed: t is 1.5, expected 2");
  CHECK(raised(R"({"fill": "t", "value": 1.5}, {"item": "t", "as": "v"})") ==
        "ValueError: item: 1.5 is not an integer, and variables only hold integers");
  CHECK(
      raised(R"({"fill": "t", "value": 1, "numel": 2}, {"item": "t", "as": "v"})").starts_with("ValueError"));
  CHECK(raised(R"({"fill": "t", "value": 1, "numel": "rank - 1"})") ==
        "RuntimeError: Trying to create tensor with negative dimension -1");
  CHECK(raised(R"({"fill": "t", "value": 1, "numel": "1000000000000 + rank"})") ==
        "RuntimeError: a tensor of 1000000000000 elements is too large");
  CHECK(raised(R"({"broadcast": {"src": "rank + 5"}})") ==
        "ValueError: rank 5 is out of range: the world has 1 ranks");
  CHECK(raised(R"({"all_gather": {"output": "all"}}, {"print": "{all[1]}"})") ==
        "IndexError: list index out of range");
  CHECK(raised(R"({"print": "{1 / rank}"})") == "ZeroDivisionError: integer division or modulo by zero");
}

TEST_CASE("a check compares in the tensor's own type", "[scenarios]") {
  CHECK(raised(R"({"fill": "t", "value": 0.1}, {"check": "t", "value": 0.1})") == "nothing");
  CHECK(raised(R"({"fill": "t", "value": -0.0}, {"check": "t", "value": 0})") == "nothing");
  CHECK(raised(R"({"fill": "t", "value": 7, "dtype": "uint8"}, {"check": "t", "value": 7})") == "nothing");
}

TEST_CASE("loops count, nest and break", "[scenarios]") {
  CHECK(printed(R"({"for": "i", "in": [1, 4], "do": [{"print": "{i}"}]})") == Lines{"1", "2", "3"});
  CHECK(printed(R"({"for": "i", "in": [3, 3], "do": [{"print": "{i}"}]}, {"print": "end"})") == Lines{"end"});
  CHECK(printed(
            R"({"for": "i", "in": ["rank", "rank + 2"], "do": [{"repeat": 2, "do": [{"print": "{i}"}]}]})") ==
        Lines{"0", "0", "1", "1"});
  CHECK(printed(R"({"for": "i", "in": [0, 9], "do": [
                     {"for": "j", "in": [0, 9], "do": [{"if": "j == 2", "do": [{"break": true}]},
                         {"print": "{i}{j}"}]},
                     {"if": "i == 1", "do": [{"break": true}]}]})") == Lines{"00", "01", "10", "11"});
  CHECK(printed(
            R"({"for": "i", "in": [9223372036854775806, 9223372036854775807], "do": [{"print": "{i}"}]})") ==
        Lines{"9223372036854775806"});
}

TEST_CASE("a condition chooses which branch runs", "[scenarios]") {
  CHECK(printed(R"({"if": "rank == 0", "do": [{"print": "yes"}], "else": [{"print": "no"}]})") ==
        Lines{"yes"});
  CHECK(printed(R"({"if": "rank", "do": [{"print": "yes"}], "else": [{"print": "no"}]})") == Lines{"no"});
  CHECK(printed(R"({"if": false, "do": [{"print": "yes"}]})") == Lines{});
}

TEST_CASE("inputs are taken one by one and counted", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(
      solo(R"({"repeat": 2, "do": [{"for_each_input": "x", "do": [{"print": "{x}"}]}]})"), "solo.json");
  CHECK(rank.context().inputs_taken == -1);
  RunState state;
  run_rank(scenario, 0, state);
  CHECK(rank.printed == Lines{"0", "1", "2", "0", "1", "2"});
  CHECK(rank.context().inputs_taken == 6);
}

TEST_CASE("an endless loop runs out of steps", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(solo(R"({"repeat": 1000000000000, "do": []})"), "solo.json");
  RunState state;
  CHECK_THROWS_AS(run_rank(scenario, 0, state), StepLimitReached);
}

TEST_CASE("exit ends the program from anywhere", "[scenarios]") {
  CHECK(printed(R"({"try": {"do": [{"repeat": 3, "do": [{"print": "once"}, {"exit": true}]}],
                             "except": [{"print": "caught"}]}}, {"print": "never"})") == Lines{"once"});
}

TEST_CASE("try catches what a program raises", "[scenarios]") {
  CHECK(printed(
            R"({"try": {"do": [{"raise": {"type": "KeyError", "message": "rank {rank}"}}, {"print": "never"}],
                             "except": [{"print": "{error_type}: {error}"}]}}, {"print": "on"})") ==
        Lines{"KeyError: rank 0", "on"});
  CHECK(printed(R"({"try": {"do": [{"print": "fine"}], "except": [{"print": "never"}]}}, {"print": "on"})") ==
        Lines{"fine", "on"});
  CHECK(raised(R"({"try": {"do": [{"raise": "a"}], "except": [{"raise": "b after {error}"}]}})") ==
        "RuntimeError: b after a");
  CHECK(printed(R"({"repeat": 5, "do": [{"try": {"do": [{"print": "in"}, {"break": true}], "except": []}}]},
                   {"print": "out"})") == Lines{"in", "out"});
}

TEST_CASE("calls carry their arguments", "[scenarios]") {
  CHECK(issued(R"({"all_reduce": {}})") == Lines{"all_reduce(numel=1, float32, SUM)"});
  CHECK(issued(
            R"({"fill": "t", "value": 1, "numel": 4, "dtype": "int32"},
              {"all_reduce": "t", "reduce_op": "max"})") == Lines{"all_reduce(numel=4, int32, MAX)"});
  CHECK(issued(R"({"broadcast": {"shape": [2, 3], "dtype": "float16", "label": "weights"}})") ==
        Lines{"broadcast(numel=6, float16, root=0) in weights"});
  CHECK(issued(R"({"reduce": {"numel": "2 + 2", "dst": "rank", "reduce_op": "AVG"}})") ==
        Lines{"reduce(numel=4, float32, AVG, root=0)"});
  CHECK(issued(R"({"barrier": {"group": "alone"}})") == Lines{"barrier()"});
  CHECK(
      issued(
          R"({"all_gather": {"numel": 2}}, {"all_gather_into_tensor": {"numel": 2}}, {"gather": {"numel": 2}},
                  {"scatter": {"numel": 2}}, {"reduce_scatter": {"numel": 2}}, {"reduce_scatter_tensor": {}},
                  {"all_to_all": {"numel": 2}}, {"all_to_all_single": {}})") ==
      Lines{"all_gather(numel=2, float32)", "all_gather_into_tensor(numel=2, float32)",
            "gather(numel=2, float32, root=0)", "scatter(numel=2, float32, root=0)",
            "reduce_scatter(numel=2, float32, SUM)", "reduce_scatter_tensor(numel=1, float32, SUM)",
            "all_to_all(numel=2, float32)", "all_to_all_single(numel=1, float32)"});
}

TEST_CASE("a call says where it stands in the file", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario =
      parse_scenario("{\"world_size\": 1,\n \"program\": [\n   {\"barrier\": {}}]}", "dir/solo.json");
  RunState state;
  run_rank(scenario, 0, state);
  REQUIRE(rank.issued.size() == 1);
  CHECK(to_string(rank.issued[0].site) == "solo.json:3:4");
}

TEST_CASE("results can be read by name", "[scenarios]") {
  CHECK(printed(R"({"all_gather": {"value": 5, "output": "all"}}, {"print": "{all} {all[0]}"})") ==
        Lines{"[5] 5"});
  CHECK(printed(R"({"reduce_scatter": {"value": "peer + 7", "output": "mine"}}, {"print": "{mine}"})") ==
        Lines{"7"});
  CHECK(printed(R"({"scatter": {"tensor": "mine", "numel": 2, "value": "peer + 3"}}, {"print": "{mine}"})") ==
        Lines{"[3, 3]"});
  CHECK(printed(R"({"all_to_all": {"value": "10 + peer", "output": "got"}}, {"print": "{got}"})") ==
        Lines{"[10]"});
  CHECK(printed(
            R"({"all_gather_into_tensor": {"value": 4, "numel": 2, "output": "cat"}}, {"print": "{cat}"})") ==
        Lines{"[4, 4]"});
}

TEST_CASE("a value is set before every call, and other arguments make the tensor anew", "[scenarios]") {
  CHECK(printed(R"({"for": "i", "in": [0, 2], "do": [{"all_reduce": {"tensor": "t", "value": "i + 1"}},
                     {"print": "{t}"}, {"add": "t", "value": 10}]})") == Lines{"1", "2"});
  CHECK(printed(
            R"({"fill": "t", "value": 3, "dtype": "int64"}, {"all_reduce": "t", "numel": 2}, {"print": "{t}"},
                   {"all_reduce": "t", "numel": 2, "value": 4}, {"print": "{t}"})") ==
        Lines{"[1, 1]", "[4, 4]"});
}

TEST_CASE("a call that needs the same tensor uses the same storage", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(
      solo(R"({"repeat": 3, "do": [{"all_reduce": {"numel": 4}}]}, {"all_reduce": {"numel": 4}})"),
      "solo.json");
  RunState state;
  run_rank(scenario, 0, state);
  REQUIRE(rank.issued.size() == 4);
  for (const Op& op : rank.issued) {
    CHECK(op.tensors.input == rank.issued[0].tensors.input);
  }
}

TEST_CASE("an asynchronous call is waited for by name", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(
      solo(R"({"all_reduce": {"async_op": true, "as": "a"}}, {"all_reduce": {"async_op": true, "as": "b"}},
              {"wait": "b"}, {"wait": "a"})"),
      "solo.json");
  RunState state;
  run_rank(scenario, 0, state);
  CHECK(rank.waited == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("waiting for what was never issued raises as in Python", "[scenarios]") {
  CHECK(raised(R"({"wait": "w"}, {"all_reduce": {"async_op": true, "as": "w"}})") ==
        "NameError: name 'w' is not defined");
  CHECK(raised(R"({"all_reduce": {"async_op": true, "as": "w"}}, {"wait": "w"}, {"wait": "w"})") ==
        "nothing");
}

TEST_CASE("computing and devices reach the backend", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(
      solo(R"({"compute": "5ms"}, {"compute": "1us"}, {"set_device": "cuda:1"}, {"all_reduce": {}},
              {"all_reduce": {"device": "cpu"}})"),
      "solo.json");
  RunState state;
  run_rank(scenario, 0, state);
  CHECK(rank.computed == 5'001'000);
  REQUIRE(rank.issued.size() == 2);
  CHECK(to_string(rank.issued[0].device) == "cuda:1");
  CHECK(to_string(rank.issued[1].device) == "cpu");
}

TEST_CASE("a joinable notifies, runs its statements and its hooks", "[scenarios]") {
  CHECK(issued(R"({"join": ["counter"], "do": [{"for_each_input": "x", "do": [{"forward": "counter"}]}]})",
               counter) == Lines{"all_reduce(numel=1, float32, SUM) in join.notify",
                                 "all_reduce(numel=1, float32, SUM) in counter.forward",
                                 "all_reduce(numel=1, float32, SUM) in join.notify",
                                 "all_reduce(numel=1, float32, SUM) in counter.forward",
                                 "all_reduce(numel=1, float32, SUM) in join.notify",
                                 "all_reduce(numel=1, float32, SUM) in counter.forward",
                                 "all_reduce(numel=1, float32, SUM) in join.count"});
  CHECK(printed(
            R"({"join": ["counter"], "kwargs": {"sync": true}, "do": [{"forward": "counter"},
              {"forward": "counter"}]},
                   {"print": "{count}"})",
            counter) == Lines{"last 1, sync 1, other 0", "2"});
}

TEST_CASE("forward and main_hook pair with each other, post_hook with itself", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario =
      parse_scenario(solo(R"({"join": ["c"], "do": [{"forward": "c"}]})",
                          R"("objects": {"c": {"kind": "joinable", "forward": [{"barrier": {}}],
              "post_hook": [{"barrier": {}}]}},)"),
                     "solo.json");
  RunState state;
  run_rank(scenario, 0, state);
  REQUIRE(rank.issued.size() == 4);  // notify, forward, count, post_hook
  const auto pairing = [&](std::size_t i) { return rank.scopes().pairing(rank.issued[i].scope); };
  CHECK(rank.scopes().pairing_name(pairing(1)) == "c");
  CHECK(rank.scopes().pairing_name(pairing(3)) == "c.post_hook");
  CHECK(pairing(1).strict);
  CHECK(pairing(3).strict);
}

TEST_CASE("a joinable without notify leaves it to the program", "[scenarios]") {
  const std::string quiet = R"("objects": {"q": {"kind": "joinable", "notify": false}},)";
  CHECK(issued(R"({"join": ["q"], "do": [{"forward": "q"}]})", quiet) ==
        Lines{"all_reduce(numel=1, float32, SUM) in join.count"});
  CHECK(issued(R"({"join": ["q"], "do": [{"notify": "q"}, {"forward": "q"}]})", quiet) ==
        Lines{"all_reduce(numel=1, float32, SUM) in join.notify",
              "all_reduce(numel=1, float32, SUM) in join.count"});
  CHECK(issued(R"({"join": ["q"], "enable": false, "do": [{"notify": "q"}]})", quiet) == Lines{});
}

TEST_CASE("leaving a join by break is joining, leaving it by an error or exit is not", "[scenarios]") {
  const std::string quiet = R"("objects": {"q": {"kind": "joinable"}},)";
  CHECK(issued(R"({"repeat": 2, "do": [{"join": ["q"], "do": [{"break": true}]}]})", quiet).size() == 1);
  CHECK(issued(R"({"try": {"do": [{"join": ["q"], "do": [{"raise": "x"}]}], "except": []}})", quiet).empty());
  CHECK(issued(R"({"join": ["q"], "do": [{"exit": true}]})", quiet).empty());
}

TEST_CASE("an empty join raises torch's error", "[scenarios]") {
  CHECK(raised(R"({"join": [], "do": []})") ==
        "ValueError: The join context manager requires at least one joinable");
}

TEST_CASE("a keyword argument that is not an integer cannot be computed with", "[scenarios]") {
  SoloRank rank;
  const Scenario scenario = parse_scenario(
      solo(R"({"join": ["counter"], "kwargs": {"sync": "yes"}, "do": []})", counter), "solo.json");
  RunState state;
  CHECK_THROWS_WITH(run_rank(scenario, 0, state), "kwargs.sync is not an integer");
}

}  // namespace rollcall::scenario::interpreter_test
