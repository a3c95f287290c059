// Compiles text to steps: a recursive descent over the grammar in expression.h.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "scenarios/program/expression.h"

namespace rollcall::scenario {
namespace {

using Operation = Expression::Operation;

struct Operator {
  std::string_view text;
  Operation action;
};

// One level of binding strength. Of operators that begin alike, the longer comes first.
using Level = std::array<Operator, 4>;
constexpr std::array<Level, 4> levels{{
    {{{"==", Operation::equal}, {"!=", Operation::not_equal}}},
    {{{"<=", Operation::less_equal},
      {">=", Operation::greater_equal},
      {"<", Operation::less},
      {">", Operation::greater}}},
    {{{"+", Operation::add}, {"-", Operation::subtract}}},
    {{{"*", Operation::multiply}, {"/", Operation::divide}, {"%", Operation::remainder}}},
}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return begins_name(c) || is_digit(c) || c == '.'; }

class Compiler {
 public:
  Compiler(std::string_view text, const NameResolver& resolve) : text_(text), resolve_(resolve) {}

  Expression compile() {
    skip_blanks();
    if (at_ == text_.size()) {
      fail(0, "the expression is empty");
    }
    choice();
    if (at_ < text_.size()) {
      fail_at_rest();
    }
    return Expression(std::move(steps_));
  }

 private:
  [[noreturn]] static void fail(std::size_t offset, std::string message, std::string suggestion = {}) {
    throw ExpressionError{offset, std::move(message), std::move(suggestion)};
  }

  // Reports text where the expression should have ended or continued with an operator.
  [[noreturn]] void fail_at_rest() const {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> habits{
        {{"and", "&&"}, {"or", "||"}, {"=", "=="}, {"&", "&&"}, {"|", "||"}, {"is", "=="}}};
    const std::string_view rest = text_.substr(at_);
    for (const auto& [habit, right] : habits) {
      if (!rest.starts_with(habit)) {
        continue;
      }
      const bool is_whole =
          !begins_name(habit[0]) || rest.size() == habit.size() || !continues_name(rest[habit.size()]);
      if (is_whole) {
        fail(at_, fmt::format("unexpected \"{}\"", habit), std::string(right));
      }
    }
    if (rest[0] == ')') {
      fail(at_, "this ')' closes nothing");
    }
    fail(at_, fmt::format("expected an operator before \"{}\"", rest.substr(0, 20)));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool accept(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) {
      return false;
    }
    at_ += token.size();
    skip_blanks();
    return true;
  }

  std::size_t emit(Operation action, std::int64_t operand = 0) {
    steps_.push_back({action, operand});
    return steps_.size() - 1;
  }
  void pushed() {
    if (++depth_ > Expression::depth_max) {
      fail(at_, "the expression is nested too deeply; compute it in parts");
    }
  }
  void popped() { --depth_; }
  void land(std::size_t jump) { steps_[jump].operand = static_cast<std::int64_t>(steps_.size()); }

  // condition ? a : b
  void choice() {
    disjunction();
    if (!accept("?")) {
      return;
    }
    const std::size_t skip_first = emit(Operation::jump_if_false);
    popped();
    nested([this] { choice(); });
    if (!accept(":")) {
      fail(at_, "expected ':' and the value to use if the condition is false");
    }
    const std::size_t skip_second = emit(Operation::jump);
    land(skip_first);
    popped();
    nested([this] { choice(); });
    land(skip_second);
  }

  void disjunction() {
    conjunction();
    while (accept("||")) {
      const std::size_t skip = emit(Operation::jump_if_true_keep);
      popped();
      conjunction();
      emit(Operation::to_boolean);
      land(skip);
    }
  }

  void conjunction() {
    binary(0);
    while (accept("&&")) {
      const std::size_t skip = emit(Operation::jump_if_false_keep);
      popped();
      binary(0);
      emit(Operation::to_boolean);
      land(skip);
    }
  }

  void binary(std::size_t level) {
    if (level == levels.size()) {
      unary();
      return;
    }
    binary(level + 1);
    while (const Operator* found = accept_operator(levels[level])) {
      binary(level + 1);
      emit(found->action);
      popped();
    }
  }

  const Operator* accept_operator(const Level& level) {
    for (const Operator& candidate : level) {
      if (!candidate.text.empty() && accept(candidate.text)) {
        return &candidate;
      }
    }
    return nullptr;
  }

  void unary() {
    if (!text_.substr(at_).starts_with("!=") && accept("!")) {
      nested([this] { unary(); });
      emit(Operation::logical_not);
    } else if (accept("-")) {
      nested([this] { unary(); });
      emit(Operation::negate);
    } else {
      primary();
    }
  }

  void primary() {
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    if (accept("(")) {
      nested([this] { choice(); });
      if (!accept(")")) {
        fail(at_, "a ')' is missing");
      }
    } else if (is_digit(next)) {
      number();
    } else if (begins_name(next)) {
      name();
    } else if (at_ == text_.size()) {
      fail(at_, "the expression ends where a value is expected");
    } else {
      fail(at_, fmt::format("expected a number or a name before \"{}\"", text_.substr(at_, 20)));
    }
  }

  void number() {
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail(begin, "this number does not fit in 64 bits");
      }
    }
    if (at_ < text_.size() && (text_[at_] == '.' || begins_name(text_[at_]))) {
      fail(begin, "expressions only use integers");
    }
    skip_blanks();
    emit(Operation::constant, value);
    pushed();
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    skip_blanks();
    if (word == "true" || word == "false") {
      emit(Operation::constant, word == "true");
    } else if (word == "not") {
      fail(begin, "unexpected \"not\"", "!");
    } else {
      const NameLookup found = resolve_(word);
      if (!found.slot) {
        fail(begin, found.error.message, found.error.suggestion);
      }
      emit(Operation::variable, static_cast<std::int64_t>(*found.slot));
    }
    pushed();
  }

  // Bounds the recursion for texts such as ten thousand parentheses.
  template <typename Parse>
  void nested(Parse parse) {
    constexpr std::size_t deepest = 64;
    if (++nesting_ > deepest) {
      fail(at_, "the expression is nested too deeply");
    }
    parse();
    --nesting_;
  }

  std::string_view text_;
  const NameResolver& resolve_;
  std::vector<Expression::Step> steps_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;  // numbers on the stack after the steps so far
  std::size_t nesting_ = 0;
};

}  // namespace

Expression compile_expression(std::string_view text, const NameResolver& resolve) {
  return Compiler(text, resolve).compile();
}

}  // namespace rollcall::scenario
