#include "scenarios/test/keyword_expression.h"

#include <algorithm>

#include <fmt/core.h>

namespace rollcall::scenario {

namespace {

using Holds = std::function<bool(const std::string& word)>;

// Parses and evaluates at the same time: a text is short, and is used for few scenarios. One function per level of
// precedence.
class KeywordReader {
 public:
  KeywordReader(std::string_view text, const Holds& holds) : text_(text), holds_(holds) { advance(); }

  bool read_all() {
    const bool chosen = token_.empty() || read_or();
    if (!token_.empty()) {
      fail("expected 'and', 'or' or the end of the expression");
    }
    return chosen;
  }

 private:
  static constexpr int nesting_max = 200;

  bool read_or() {
    bool value = read_and();
    while (take("or")) {
      value = read_and() || value;  // the right side is always parsed
    }
    return value;
  }

  bool read_and() {
    bool value = read_not();
    while (take("and")) {
      value = read_not() && value;
    }
    return value;
  }

  bool read_not() {
    if (++nesting_ > nesting_max) {
      fail("too deep");
    }
    const bool value = take("not") ? !read_not() : read_word();
    --nesting_;
    return value;
  }

  bool read_word() {
    if (take("(")) {
      const bool value = read_or();
      if (!take(")")) {
        fail("expected ')'");
      }
      return value;
    }
    if (token_.empty() || is_word(")") || is_word("and") || is_word("or")) {
      fail("expected a word");
    }
    const std::string word(token_);
    advance();
    return holds_(word);
  }

  bool take(std::string_view word) {
    const bool is_next = is_word(word);
    if (is_next) {
      advance();
    }
    return is_next;
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
  const Holds& holds_;
  std::string_view token_;  // empty at the end
  bool quoted_ = false;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  int nesting_ = 0;
};

}  // namespace

KeywordExpression::KeywordExpression(std::string_view text) : text_(text) {
  evaluate([](const std::string&) { return true; });  // throws if it is invalid
}

bool KeywordExpression::evaluate(const Holds& holds) const { return KeywordReader(text_, holds).read_all(); }

}  // namespace rollcall::scenario
