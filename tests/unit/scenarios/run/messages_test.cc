// Sends, receives, object collectives and split sizes in scenario files.

#include <string>
#include <vector>

#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::messages_test {
namespace {

using Lines = std::vector<std::string>;

Report run_text(const std::string& text) { return run(parse_scenario(text, "test.json")); }

// Two ranks, one program.
std::string pair(const std::string& statements, const std::string& backend = "gloo") {
  return R"({"world_size": 2, "backend": ")" + backend + R"(", "program": [)" + statements + "]}";
}

Lines printed(const Report& report) {
  Lines lines;
  for (const OutputLine& line : report.output) {
    lines.push_back(line.text);
  }
  return lines;
}

}  // namespace

TEST_CASE("a message carries its tensor from rank to rank", "[scenarios][fiber]") {
  const Report report = run_text(pair(
      R"({"if": "rank == 0", "do": [{"send": {"tensor": "t", "value": 7, "numel": 3, "dst": 1}}],
          "else": [{"recv": {"tensor": "t", "value": 0, "numel": 3, "src": 0}}, {"print": "{t}"}]})"));
  CHECK(printed(report) == Lines{"[7, 7, 7]"});
  CHECK(kind_of(report.verdict) == FindingKind::ok);
}

TEST_CASE("on gloo a receive may come from anyone, and says from whom", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 3, "backend": "gloo", "program": [
      {"if": "rank == 1", "do": [{"repeat": 2, "do": [{"recv": "t", "numel": 1, "as": "who"},
                                                      {"print": "{t} from {who}"}]}],
       "else": [{"compute": "1ms"}, {"send": "t", "value": "rank * 10", "dst": 1}]}]})");
  CHECK(printed(report) == Lines{"0 from 0", "20 from 2"});
}

TEST_CASE("tags keep messages apart", "[scenarios][fiber]") {
  const Report report = run_text(pair(
      R"({"if": "rank == 0", "do": [
            {"isend": "a", "value": 1, "dst": 1, "tag": 1, "as": "x"},
            {"isend": "b", "value": 2, "dst": 1, "tag": 2, "as": "y"}, {"wait": "x"}, {"wait": "y"}],
          "else": [{"recv": "two", "value": 0, "src": 0, "tag": 2}, {"recv": "one", "value": 0, "src": 0, "tag": 1},
                   {"print": "{one} {two}"}]})"));
  CHECK(printed(report) == Lines{"1 2"});
}

TEST_CASE("the messages of a batch progress together, and one wait is for all", "[scenarios][fiber]") {
  const std::string exchange =
      R"({"fill": "mine", "value": "rank"}, {"fill": "theirs", "value": -1},
         {"batch_isend_irecv": [{"isend": "mine", "dst": "1 - rank"}, {"irecv": "theirs", "src": "1 - rank"}],
          "as": "b", "label": "exchange"},
         {"wait": "b"}, {"print": "{theirs}"})";
  CHECK(printed(run_text(pair(exchange, "nccl"))) == Lines{"1", "0"});
}

TEST_CASE("in scenarios too, two ranks that send first wait for each other", "[scenarios][fiber]") {
  const Report report = run_text(pair(R"({"send": {"dst": "1 - rank"}}, {"recv": {"src": "1 - rank"}})"));
  CHECK(kind_of(report.verdict) == FindingKind::send_send);
  CHECK(finding_of(report.verdict)->culprits == RankSet{0, 1});
}

TEST_CASE("object collectives carry any JSON value", "[scenarios][fiber]") {
  const Report report = run_text(pair(
      R"({"all_gather_object": {"object": {"rank": "{rank}", "loss": 0.5}, "output": "all"}}, {"print": "{all}"},
         {"broadcast_object_list": {"objects": ["from {rank}", null], "src": 1, "output": "got"}},
         {"if": "rank == 0", "do": [{"print": "{got}"}]},
         {"gather_object": {"object": [1, true], "dst": 0, "output": "root"}},
         {"scatter_object_list": {"objects": ["a", "b"], "output": "part"}},
         {"if": "rank == 1", "do": [{"print": "{root} {part}"}]})"));
  const std::string all = "[{'rank': '0', 'loss': 0.5}, {'rank': '1', 'loss': 0.5}]";
  CHECK(printed(report) == Lines{all, "['from 1', None]", all, "[] ['b']"});
}

TEST_CASE("lists of objects go from one rank to another", "[scenarios][fiber]") {
  const Report report = run_text(pair(
      R"({"if": "rank == 0",
          "do": [{"send_object_list": {"objects": [{"a": 1}, "from {rank}"], "dst": 1}}],
          "else": [{"recv_object_list": {"objects": [null, null], "output": "got"}}, {"print": "{got}"}]})"));
  CHECK(printed(report) == Lines{"[{'a': 1}, 'from 0']"});
  CHECK(report.ops == 4);
  CHECK(test::problem(test::quartet(R"({"send_object_list": {"objects": [1]}})")) ==
        "/program/0: \"send_object_list\" needs \"dst\"");
}

TEST_CASE("split sizes say how much goes to whom", "[scenarios][fiber]") {
  const Report report = run_text(pair(
      R"({"all_to_all_single": {"value": "rank", "input_split_sizes": ["rank + 1", 1],
          "output_split_sizes": [1, 1], "output": "o"}}, {"print": "{o}"})"));
  CHECK(kind_of(report.verdict) == FindingKind::split_mismatch);
  const Report even = run_text(pair(
      R"({"all_to_all_single": {"value": "rank", "input_split_sizes": [1, 2],
          "output_split_sizes": ["rank + 1", "rank + 1"], "output": "o"}}, {"print": "{o}"})"));
  CHECK(printed(even) == Lines{"[0, 1]", "[0, 0, 1, 1]"});
}

TEST_CASE("messages that cannot be meant are refused with a hint", "[scenarios]") {
  CHECK(test::problem(test::quartet(R"({"send": "t", "numel": 1})")) == "/program/0: \"send\" needs \"dst\"");
  CHECK(test::problem(test::quartet(R"({"recv": {"src": 4}})")) ==
        "/program/0/recv/src: rank 4 is out of range: ranks are 0 to 3");
  CHECK(test::problem(test::quartet(R"({"batch_isend_irecv": [{"send": {"dst": 1}}]})")) ==
        "/program/0/batch_isend_irecv/0: a batch consists of isend and irecv");
  CHECK(test::problem(test::quartet(R"({"batch_isend_irecv": [{"isend": {"dst": 1, "as": "w"}}]})"))
            .find("a batch has one \"as\" for all its messages") != std::string::npos);
  CHECK(test::problem(test::quartet(R"({"all_gather_object": "x"})")) ==
        "/program/0/all_gather_object: expected an object of arguments, found a string");
}

TEST_CASE(
    "a receive from anyone that may have taken the message of the next one is named, and no repair is proved",
    "[scenarios][judge]") {
  const Report report = run(parse_scenario(R"({"world_size": 3, "backend": "gloo", "programs": {
    "0": [{"recv": {"numel": 1, "site": "a.py:1"}}, {"recv": {"numel": 1, "src": 1, "site": "a.py:2"}}],
    "1-2": [{"send": {"numel": 1, "dst": 0, "site": "a.py:3"}}]}})",
                                           "test.json"));
  const Finding& finding = *finding_of(report.verdict);
  CHECK(finding.headline.find("whose message an earlier recv from anyone may have taken") !=
        std::string::npos);
  CHECK(finding.cause.find("at a.py:1 takes the message of whichever rank comes first") != std::string::npos);
  CHECK_FALSE(finding.repair);
}

TEST_CASE("split sizes that are left out are equal, as in torch", "[scenarios][fiber]") {
  const auto verdict_of = [](const std::string& splits) {
    const Report report = run(parse_scenario(
        test::quartet(R"({"all_to_all_single": {"tensor": "t", "numel": 8)" + splits + "}}"), "test.json"));
    return std::string(verdict_word(report.verdict));
  };
  CHECK(verdict_of(R"(, "input_split_sizes": [2, 2, 2, 2])") == "ok");
  CHECK(verdict_of(R"(, "input_split_sizes": [2, 2, 2, 2], "output_split_sizes": [])") == "ok");
  CHECK(verdict_of(R"(, "input_split_sizes": [], "output_split_sizes": [])") == "ok");
  CHECK(verdict_of(R"(, "input_split_sizes": [1, 3, 2, 2], "output_split_sizes": [])") == "mismatch");
}

}  // namespace rollcall::scenario::messages_test
