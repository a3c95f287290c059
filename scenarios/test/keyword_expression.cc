#include "scenarios/test/keyword_expression.h"

#include <utility>

#include <fmt/format.h>

namespace rollcall::scenario {

// One level of binding is one function.
class KeywordParser {
 public:
  KeywordParser(std::string_view text, std::vector<KeywordExpression::Term>& terms)
      : text_(text), terms_(terms) {
    advance();
  }

  bool is_empty() const { return token_.empty(); }

  void parse_all() {
    parse_or();
    if (!token_.empty()) {
      fail("expected 'and', 'or' or the end of the expression");
    }
  }

 private:
  using Kind = KeywordExpression::Term::Kind;
  static constexpr int nesting_max = 200;

  void parse_or() {
    parse_and();
    while (is_word("or")) {
      advance();
      parse_and();
      terms_.push_back({Kind::disjunction, {}});
    }
  }

  void parse_and() {
    parse_not();
    while (is_word("and")) {
      advance();
      parse_not();
      terms_.push_back({Kind::conjunction, {}});
    }
  }

  void parse_not() {
    if (++nesting_ > nesting_max) {
      fail("too deep");
    }
    if (is_word("not")) {
      advance();
      parse_not();
      terms_.push_back({Kind::negation, {}});
    } else if (is_word("(")) {
      advance();
      parse_or();
      if (!is_word(")")) {
        fail("expected ')'");
      }
      advance();
    } else if (token_.empty() || is_word(")") || is_word("and") || is_word("or")) {
      fail("expected a word");
    } else {
      terms_.push_back({Kind::word, std::string(token_)});
      advance();
    }
    --nesting_;
  }

  bool is_word(std::string_view word) const { return !quoted_ && token_ == word; }

  void advance() {
    begin_ = std::min(text_.find_first_not_of(" \t\n", end_), text_.size());
    quoted_ = begin_ < text_.size() && (text_[begin_] == '"' || text_[begin_] == '\'');
    if (quoted_) {
      const std::size_t close = text_.find(text_[begin_], begin_ + 1);
      if (close == std::string_view::npos || close == begin_ + 1) {
        fail(close == begin_ + 1 ? "an empty word" : "a quote is not closed");
      }
      token_ = text_.substr(begin_ + 1, close - begin_ - 1);
      end_ = close + 1;
      return;
    }
    const bool is_parenthesis = begin_ < text_.size() && (text_[begin_] == '(' || text_[begin_] == ')');
    end_ = is_parenthesis ? begin_ + 1 : std::min(text_.find_first_of(" \t\n()", begin_), text_.size());
    token_ = text_.substr(begin_, end_ - begin_);
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw BadExpression(fmt::format("'{}', at character {}: {}", text_, begin_ + 1, what));
  }

  std::string_view text_;
  std::vector<KeywordExpression::Term>& terms_;
  std::string_view token_;  // empty at the end
  bool quoted_ = false;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  int nesting_ = 0;
};

KeywordExpression::KeywordExpression(std::string_view text) {
  KeywordParser parser(text, terms_);
  if (!parser.is_empty()) {
    parser.parse_all();
  }
}

bool KeywordExpression::evaluate(const std::function<bool(const std::string& word)>& holds) const {
  std::vector<bool> values;
  const auto pop = [&values] {
    const bool value = values.back();
    values.pop_back();
    return value;
  };
  for (const Term& term : terms_) {
    switch (term.kind) {
      case Term::Kind::word:
        values.push_back(holds(term.word));
        break;
      case Term::Kind::negation:
        values.back() = !values.back();
        break;
      case Term::Kind::conjunction: {
        const bool right = pop();
        values.back() = values.back() && right;
        break;
      }
      case Term::Kind::disjunction: {
        const bool right = pop();
        values.back() = values.back() || right;
        break;
      }
    }
  }
  return values.empty() || values.back();
}

}  // namespace rollcall::scenario
