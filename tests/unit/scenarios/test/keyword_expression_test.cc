#include "scenarios/test/keyword_expression.h"

#include <set>
#include <string>

#include "tests/catch.h"

namespace rollcall::scenario::keyword_expression_test {
namespace {

bool chooses(const std::string& text, const std::set<std::string>& words) {
  return KeywordExpression(text).evaluate([&](const std::string& word) { return words.contains(word); });
}

std::string refusal(const std::string& text) {
  try {
    const KeywordExpression expression(text);
    return "";
  } catch (const BadExpression& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("an expression without words chooses everything", "[scenarios]") {
  CHECK(chooses("", {}));
  CHECK(chooses("  ", {}));
}

TEST_CASE("not binds tighter than and, and tighter than or", "[scenarios]") {
  CHECK(chooses("ddp", {"ddp"}));
  CHECK_FALSE(chooses("not ddp", {"ddp"}));
  CHECK(chooses("a or b and c", {"a"}));
  CHECK_FALSE(chooses("(a or b) and c", {"a"}));
  CHECK(chooses("not a or b", {"b", "a"}));
  CHECK_FALSE(chooses("not (a or b)", {"b"}));
  CHECK(chooses("not not a", {"a"}));
  CHECK(chooses("a and not b and not c", {"a"}));
}

TEST_CASE("words may be anything that is no parenthesis, and in quotes even that", "[scenarios]") {
  CHECK(chooses("world_size=4", {"world_size=4"}));
  CHECK(chooses("[world_size=4]", {"[world_size=4]"}));
  CHECK(chooses("\"uneven inputs\" and 'and'", {"uneven inputs", "and"}));
}

TEST_CASE("what is no expression is refused with its place", "[scenarios]") {
  CHECK(refusal("ddp and") == "'ddp and', at character 8: expected a word");
  CHECK(refusal("(ddp") == "'(ddp', at character 5: expected ')'");
  CHECK(refusal("a b") == "'a b', at character 3: expected 'and', 'or' or the end of the expression");
  CHECK(refusal("a \"b") == "'a \"b', at character 3: a quote is not closed");
  CHECK(refusal("or a") == "'or a', at character 1: expected a word");
  CHECK(refusal("()") == "'()', at character 2: expected a word");
  CHECK_FALSE(refusal(std::string(100'000, '(')).empty());
}

}  // namespace rollcall::scenario::keyword_expression_test
