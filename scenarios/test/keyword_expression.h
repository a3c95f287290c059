#pragma once

// Expressions that choose scenarios, as pytest's -k and -m take them: "ddp and not (slow or join)".

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
  // Words with `and`, `or`, `not` and parentheses; "not" binds tightest. A word in quotes may hold blanks. An empty
  // text chooses everything. Throws BadExpression.
  explicit KeywordExpression(std::string_view text);

  // What a word means is up to the caller.
  bool evaluate(const std::function<bool(const std::string& word)>& holds) const;

 private:
  std::string text_;
};

}  // namespace rollcall::scenario
