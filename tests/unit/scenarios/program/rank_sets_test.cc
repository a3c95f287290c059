#include <string>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/source.h"
#include "scenarios/program/rank_sets.h"
#include "tests/catch.h"

namespace rollcall::scenario::rank_sets_test {
namespace {

// Returns the ranks that a JSON value means in a world of 10, or its error.
std::string read(const std::string& text) {
  const SourceText source("a.json", text);
  const JsonTree tree = read_json(source);
  Diagnostics diagnostics(source);
  const auto ranks = read_ranks(tree.root(), 10, diagnostics);
  try {
    diagnostics.throw_if_any();
  } catch (const InvalidScenario& invalid) {
    CHECK_FALSE(ranks);
    return invalid.diagnostics().front().pointer + ": " + invalid.diagnostics().front().message;
  }
  return to_string(ranks.value());
}

}  // namespace

TEST_CASE("a rank set is a number, a list or text", "[scenarios]") {
  CHECK(read("3") == "3");
  CHECK(read("[2, 0, 1, 9]") == "0-2,9");
  CHECK(read("\"0-3,8\"") == "0-3,8");
  CHECK(read("\" 8 , 0 - 3 \"") == "0-3,8");
  CHECK(read("[]") == "none");
}

TEST_CASE("a large range costs nothing", "[scenarios]") {
  const auto parsed = parse_ranks("0-9999998", 10'000'000);
  REQUIRE(parsed.value);
  CHECK(parsed.value->ranges().size() == 1);
  CHECK(parsed.value->size() == 9'999'999);
}

TEST_CASE("ranks outside the world are errors", "[scenarios]") {
  CHECK(read("10") == ": rank 10 is out of range: ranks are 0 to 9");
  CHECK(read("[0, -1]") == "/1: rank -1 is out of range: ranks are 0 to 9");
  CHECK(read("\"0-10\"") == ": rank 10 is out of range: ranks are 0 to 9");
  CHECK(parse_ranks("1", 1).problem == "rank 1 is out of range: a world of 1 has only rank 0");
  CHECK(parse_ranks("99999999999999999999", 10).problem.find("is out of range") != std::string::npos);
}

TEST_CASE("bad rank sets say what is wrong", "[scenarios]") {
  CHECK(read("[0, 1, 0]") == ": rank 0 is named twice");
  CHECK(read("\"0-3,2\"") == ": rank 2 is named twice");
  CHECK(read("\"3-1\"") == ": the range 3-1 is backwards");
  CHECK(read("\"a\"") == ": \"a\" is not a rank or a range of ranks; a rank set is written like \"0-3,8\"");
  CHECK(read("\"1,,2\"") == ": \"\" is not a rank or a range of ranks; a rank set is written like \"0-3,8\"");
  CHECK(read("\"\"") == ": \"\" is not a rank or a range of ranks; a rank set is written like \"0-3,8\"");
  CHECK(read("[1, \"2\"]") == "/1: expected a rank, found a string");
  CHECK(read("1.5") == ": expected a rank, found a floating-point number");
}

}  // namespace rollcall::scenario::rank_sets_test
