#pragma once

// Expressions that select scenarios, like those of pytest's -k and -m: "ddp and not (slow or join)".

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rollcall::scenario {

// The text is one line, for the user, with the position in characters.
struct BadExpression : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class KeywordExpression {
 public:
  // Words with `and`, `or`, `not`, and parentheses; `not` binds tightest. A quoted word may contain blanks. An empty
  // text selects everything. Throws BadExpression.
  explicit KeywordExpression(std::string_view text);

  // `holds` decides what a word means.
  bool evaluate(const std::function<bool(const std::string& word)>& holds) const;

 private:
  std::string text_;
};

}  // namespace rollcall::scenario
