// Tests the comparison of the golden tests: if it overlooked something, every other conformance test would be
// worthless.

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/conformance/golden_compare.h"

namespace rollcall::golden::golden_compare_test {

namespace {

using nlohmann::json;

json one_rank() {
  return json::parse(R"({
    "outcome": "hang",
    "ranks": [{
      "rank": 0, "outcome": "hang",
      "stuck": {"op": "all_reduce", "i": 0, "pending": [0], "ready": true, "stack": ["cases.run_steps"]},
      "values": {"count": {"shape": [1], "dtype": "float32", "data": [2.0]}},
      "ops": [{"op": "all_reduce", "g": "world", "numel": [1], "dtype": "float32", "reduce": "SUM",
               "async": false, "site": "user.run_steps", "in": [1.0], "i": 0, "ci": 0, "done": false}],
      "ops_total": 1
    }]
  })");
}

GoldenCase golden_of(const json& expected, std::vector<std::string> unstable = {}) {
  return {.name = "join_break",
          .family = "join",
          .world_size = 1,
          .params = Params(json::object()),
          .unstable_fields = std::move(unstable),
          .document = std::make_shared<const json>(expected)};
}

// Returns the fields in which `actual` is found to differ from one_rank().
std::vector<std::string> differing(const json& actual, std::vector<std::string> unstable = {}) {
  std::vector<std::string> paths;
  for (const Difference& difference :
       compare(golden_of(one_rank(), std::move(unstable)), actual).differences) {
    paths.push_back(difference.path);
  }
  return paths;
}

bool same_message(const std::string& expected, const std::string& actual) {
  json golden = one_rank();
  json mine = one_rank();
  golden["ranks"][0]["exception"] = {{"type", "RuntimeError"}, {"msg", expected}};
  mine["ranks"][0]["exception"] = {{"type", "RuntimeError"}, {"msg", actual}};
  return compare(golden_of(golden), mine).differences.empty();
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("equal runs do not differ", "[conformance]") { CHECK(differing(one_rank()).empty()); }

TEST_CASE("every compared field of a run is really compared", "[conformance]") {
  const char* const fields[] = {
      "/outcome",
      "/ranks/0/outcome",
      "/ranks/0/stuck/op",
      "/ranks/0/stuck/i",
      "/ranks/0/stuck/pending/0",
      "/ranks/0/values/count/data/0",
      "/ranks/0/values/count/dtype",
      "/ranks/0/ops/0/op",
      "/ranks/0/ops/0/g",
      "/ranks/0/ops/0/numel/0",
      "/ranks/0/ops/0/dtype",
      "/ranks/0/ops/0/reduce",
      "/ranks/0/ops/0/async",
      "/ranks/0/ops/0/site",
      "/ranks/0/ops/0/in/0",
      "/ranks/0/ops/0/ci",
      "/ranks/0/ops/0/done",
      "/ranks/0/ops_total",
  };
  for (const char* field : fields) {
    INFO(field);
    json changed = one_rank();
    changed[json::json_pointer(field)] = "something else";
    CHECK(differing(changed).size() == 1);
    json removed = one_rank();
    json::json_pointer pointer(field);
    json& parent = removed[pointer.parent_pointer()];
    if (parent.is_object()) {
      parent.erase(pointer.back());
      CHECK(differing(removed).size() == 1);
    }
  }
}

TEST_CASE("an operation too many or too few is a difference", "[conformance]") {
  json more = one_rank();
  more["ranks"][0]["ops"].push_back(more["ranks"][0]["ops"][0]);
  CHECK(differing(more) == Paths{".ranks[0].ops[1]"});
  json fewer = one_rank();
  fewer["ranks"][0]["ops"].clear();
  CHECK(differing(fewer) == Paths{".ranks[0].ops[0]"});
}

TEST_CASE("a rank, a warning or a value that PyTorch does not have is a difference", "[conformance]") {
  json actual = one_rank();
  actual["ranks"][0]["warnings"] = {{{"type", "UserWarning"}, {"text", "skew"}}};
  actual["ranks"][0]["values"]["extra"] = nullptr;
  actual["ranks"].push_back(json::object());
  CHECK(differing(actual) == Paths{".ranks[0].values.extra", ".ranks[0].warnings", ".ranks[1]"});
}

TEST_CASE("the Python stack of a hang is not compared", "[conformance]") {
  json actual = one_rank();
  actual["ranks"][0]["stuck"].erase("stack");
  actual["ranks"][0]["stuck"].erase("ready");
  CHECK(differing(actual).empty());
}

TEST_CASE("only the unstable fields of an unstable file are let off", "[conformance]") {
  json actual = one_rank();
  actual["ranks"][0]["values"]["count"]["data"][0] = 3.0;
  actual["ranks"][0]["ops"][0]["reduce"] = "MAX";
  CHECK(differing(actual, {".ranks[].values.count"}) == Paths{".ranks[0].ops[0].reduce"});
  CHECK(differing(actual, {".ranks[].values.cou"}).size() == 2);  // the name of a field, not a prefix of one
}

TEST_CASE("gloo's transport errors are one class", "[conformance]") {
  const std::string timeout =
      "[./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting <T>ms for recv operation to complete";
  const std::string closed = "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer <peer>";
  const std::string reset = "[./gloo/transport/tcp/pair.cc:589] Read error <peer>: Connection reset by peer";
  CHECK(same_message(timeout, closed));
  CHECK(same_message(reset, closed));
  CHECK(same_message("in vain. \n Original exception: \n" + timeout,
                     "in vain. \n Original exception: \n" + reset));
  CHECK_FALSE(same_message(timeout, "Detected mismatch between collectives on ranks."));
  CHECK_FALSE(same_message("rank 1: " + timeout, "rank 2: " + timeout));
}

TEST_CASE("a deliberate difference covers its own case and field only", "[conformance]") {
  json expected = one_rank();
  expected["ranks"][0]["values"]["value"] = "None";
  GoldenCase golden = golden_of(expected);
  CHECK(compare(golden, one_rank()).differences.size() == 1);
  golden.name = "join_as_value_detail";
  golden.detail = true;
  Comparison comparison = compare(golden, one_rank());
  CHECK(comparison.differences.empty());
  REQUIRE(comparison.deliberate.size() == 1);
  CHECK(comparison.deliberate.front()->program == "join_as_value");
}

TEST_CASE("a case's program is its name without what only changes the run", "[conformance]") {
  GoldenCase golden = golden_of(one_rank());
  golden.name = "join_called_after_exit";
  CHECK(golden.program_name() == "join_called_after_exit");
  golden.finished_ranks_exit = true;
  CHECK(golden.program_name() == "join_called_after");
  golden.detail = true;
  golden.timeout = 3 * second;
  for (const char* name :
       {"join_break", "join_break_detail", "join_break_timeout", "join_break_exit_detail"}) {
    golden.name = name;
    CHECK(golden.program_name() == "join_break");
  }
}

TEST_CASE("a parameter that is missing or of another type is named", "[conformance]") {
  Params params(
      json{{"inputs", {1, 2}}, {"forward", {{"all_reduce", 4, "float32", "MAX"}}}, {"odd", "text"}});
  CHECK(params.integers("inputs") == std::vector<std::int64_t>{1, 2});
  CHECK(params.steps("forward").at(0).reduce == ReduceOp::max);
  CHECK(params.steps("main").empty());
  CHECK(params.flag("throw", true));
  CHECK_THROWS_WITH(params.integers("k"), Contains("'k'"));
  CHECK_THROWS_WITH(params.integer("odd"), Contains("'odd'"));
  Params strange(json{{"forward", {{"all_reduce", 1, "float8"}}}});
  CHECK_THROWS_WITH(strange.steps("forward"), Contains("float8"));
}

}  // namespace rollcall::golden::golden_compare_test
