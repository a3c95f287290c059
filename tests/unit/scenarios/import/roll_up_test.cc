#include "scenarios/import/roll_up.h"

#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"

namespace rollcall::scenario::roll_up_test {
namespace {

// Every letter is a statement.
std::string rolled(const std::string& letters) {
  std::vector<OrderedJson> statements;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    statements.push_back(std::string(1, letter));
  }
  NumberedProgram program{statements, {}};
  for (const char letter : letters) {
    program.numbers.push_back(static_cast<std::uint32_t>(letter - 'a'));
  }
  std::string text;
  for (const OrderedJson& statement : roll_up(program)) {
    text += (text.empty() ? "" : " ") + statement.dump();
  }
  return text;
}

}  // namespace

TEST_CASE("statements that repeat become a loop", "[import]") {
  CHECK(rolled("") == "");
  CHECK(rolled("abc") == R"("a" "b" "c")");
  CHECK(rolled("aaa") == R"({"repeat":3,"do":["a"]})");
  CHECK(rolled("abababx") == R"({"repeat":3,"do":["a","b"]} "x")");
  CHECK(rolled("xabab") == R"("x" {"repeat":2,"do":["a","b"]})");
}

TEST_CASE("two equal statements stay as they are", "[import]") { CHECK(rolled("aab") == R"("a" "a" "b")"); }

TEST_CASE("loops in loops are found", "[import]") {
  CHECK(rolled("aaabaaab") == R"({"repeat":2,"do":[{"repeat":3,"do":["a"]},"b"]})");
}

}  // namespace rollcall::scenario::roll_up_test
