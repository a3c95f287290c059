#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/program/expression.h"
#include "sim/base/error.h"
#include "tests/catch.h"

namespace rollcall::scenario::expression_test {
namespace {

const std::vector<std::string> names{"rank", "world_size", "unset", "text"};
const std::vector<Variable> variables{{3, Variable::State::number},
                                      {8, Variable::State::number},
                                      {0, Variable::State::unset},
                                      {0, Variable::State::not_a_number}};

NameLookup resolve(std::string_view name) {
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    if (names[slot] == name) {
      return {static_cast<SlotIndex>(slot), {}};
    }
  }
  return {{}, {0, "unknown name", "rank"}};
}

std::int64_t value(const std::string& text) {
  return compile_expression(text, resolve).evaluate(variables, names);
}

// Returns the error as "offset: message -> suggestion".
std::string error(const std::string& text) {
  try {
    compile_expression(text, resolve);
  } catch (const ExpressionError& problem) {
    return std::to_string(problem.offset) + ": " + problem.message +
           (problem.suggestion.empty() ? "" : " -> " + problem.suggestion);
  }
  return "none";
}

std::string raised(const std::string& text) {
  try {
    value(text);
  } catch (const Error& problem) {
    return std::string(problem.type()) + ": " + problem.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("operators bind as in C", "[scenarios]") {
  CHECK(value("1 + 2 * 3") == 7);
  CHECK(value("(1 + 2) * 3") == 9);
  CHECK(value("10 - 4 - 3") == 3);
  CHECK(value("2 * 3 % 4") == 2);
  CHECK(value("-2 * -3") == 6);
  CHECK(value("1 + 1 == 2 && 3 > 2") == 1);
  CHECK(value("1 < 2 == 1") == 1);
  CHECK(value("0 || 1 && 0") == 0);
  CHECK(value("!0 + !5") == 1);
  CHECK(value("!(1 != 1)") == 1);
  CHECK(value("3 <= 3") == 1);
  CHECK(value("3 >= 4") == 0);
}

TEST_CASE("names are variables", "[scenarios]") {
  CHECK(value("rank") == 3);
  CHECK(value("(rank + 1) % world_size") == 4);
  CHECK(value("rank == 3 ? 10 : 20") == 10);
  CHECK(value("rank == 0 ? 10 : rank == 3 ? 30 : 20") == 30);
  CHECK(value("true + false") == 1);
}

TEST_CASE("truth is 1 and everything but 0 is true", "[scenarios]") {
  CHECK(value("5 && 7") == 1);
  CHECK(value("5 || 0") == 1);
  CHECK(value("0 || 7") == 1);
  CHECK(value("0 && 7") == 0);
}

TEST_CASE("division rounds down, as in Python", "[scenarios]") {
  CHECK(value("7 / 2") == 3);
  CHECK(value("-7 / 2") == -4);
  CHECK(value("7 / -2") == -4);
  CHECK(value("-7 % 8") == 1);
  CHECK(value("7 % -8") == -1);
  CHECK(value("(rank - 4) % world_size") == 7);
  CHECK(value("-9223372036854775807 % 3") == 2);
  CHECK(value("(-9223372036854775807 - 1) % -1") == 0);
}

TEST_CASE("what cannot be computed raises in the rank", "[scenarios]") {
  CHECK(raised("1 / (rank - 3)") == "ZeroDivisionError: integer division or modulo by zero");
  CHECK(raised("1 % (rank - 3)") == "ZeroDivisionError: integer division or modulo by zero");
  CHECK(raised("9223372036854775807 + rank") ==
        "OverflowError: a number in an expression does not fit in 64 bits");
  CHECK(raised("-9223372036854775807 - rank") ==
        "OverflowError: a number in an expression does not fit in 64 bits");
  CHECK(raised("9223372036854775807 * rank") ==
        "OverflowError: a number in an expression does not fit in 64 bits");
  CHECK(raised("-(-9223372036854775807 - 1)") ==
        "OverflowError: a number in an expression does not fit in 64 bits");
  CHECK(raised("(-9223372036854775807 - 1) / -1") ==
        "OverflowError: a number in an expression does not fit in 64 bits");
  CHECK(raised("unset + 1") == "NameError: name 'unset' is not defined");
  CHECK(raised("text") == "TypeError: text is not an integer");
}

TEST_CASE("what need not be computed cannot raise", "[scenarios]") {
  CHECK(value("rank == 3 || 1 / 0") == 1);
  CHECK(value("rank != 3 && 1 / 0") == 0);
  CHECK(value("rank == 3 ? 1 : 1 / 0") == 1);
}

TEST_CASE("constants are found when the file is read", "[scenarios]") {
  CHECK(compile_expression("2 * 21", resolve).constant() == 42);
  CHECK_FALSE(compile_expression("rank", resolve).constant());
  CHECK_FALSE(compile_expression("1 / 0", resolve).constant());
  CHECK(compile_expression("rank + 1", resolve).mentions(0));
  CHECK_FALSE(compile_expression("rank + 1", resolve).mentions(1));
}

TEST_CASE("bad expressions say what is wrong and where", "[scenarios]") {
  CHECK(error("") == "0: the expression is empty");
  CHECK(error("rank ==") == "7: the expression ends where a value is expected");
  CHECK(error("rank = 0") == "5: unexpected \"=\" -> ==");
  CHECK(error("rank and 1") == "5: unexpected \"and\" -> &&");
  CHECK(error("not rank") == "0: unexpected \"not\" -> !");
  CHECK(error("1 & 1") == "2: unexpected \"&\" -> &&");
  CHECK(error("(rank") == "5: a ')' is missing");
  CHECK(error("rank)") == "4: this ')' closes nothing");
  CHECK(error("rank 1") == "5: expected an operator before \"1\"");
  CHECK(error("* 2") == "0: expected a number or a name before \"* 2\"");
  CHECK(error("!= 2") == "0: expected a number or a name before \"!= 2\"");
  CHECK(error("1 ? 2") == "5: expected ':' and the value to use if the condition is false");
  CHECK(error("1.5") == "0: expressions only use integers");
  CHECK(error("5ms") == "0: expressions only use integers");
  CHECK(error("9223372036854775808") == "0: this number does not fit in 64 bits");
  CHECK(error("2 + rnak") == "4: unknown name -> rank");
}

TEST_CASE("expressions of any depth are refused or computed, never a crash", "[scenarios]") {
  CHECK(error(std::string(100'000, '(')) == "65: the expression is nested too deeply");
  CHECK(error(std::string(100'000, '-')) == "65: the expression is nested too deeply");
  CHECK(error(std::string(100'000, '!')) == "65: the expression is nested too deeply");
  std::string right_leaning = "1";
  for (int i = 0; i < 20; ++i) {
    right_leaning = "1+(" + right_leaning + ")";
  }
  CHECK(error(right_leaning).find("too deep") != std::string::npos);
  std::string flat = "1";
  for (int i = 0; i < 10'000; ++i) {
    flat += "+1";
  }
  CHECK(value(flat) == 10'001);
}

}  // namespace rollcall::scenario::expression_test
