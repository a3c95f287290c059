#include "scenarios/json/json_syntax.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace rollcall::scenario {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool continues_number(char c) {
  return is_digit(c) || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

// One past the comment that begins at `at`; empty if there is none, or it does not end.
std::optional<std::size_t> comment_end(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) == "//") {
    constexpr std::string_view ends("\n\r\0", 3);  // as in the parser
    const std::size_t end = text.find_first_of(ends, at);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  if (text.substr(at, 2) == "/*") {
    const std::size_t close = text.find("*/", at + 2);
    return close == std::string_view::npos ? std::nullopt : std::optional(close + 2);
  }
  return std::nullopt;
}

// Skips blanks and comments, but not commas and colons.
std::size_t skip_blanks(std::string_view text, std::size_t at) {
  if (at == 0 && text.starts_with("\xef\xbb\xbf")) {
    at = 3;  // a byte order mark
  }
  while (at < text.size()) {
    if (is_blank(text[at])) {
      ++at;
    } else if (const auto end = text[at] == '/' ? comment_end(text, at) : std::nullopt) {
      at = *end;
    } else {
      break;
    }
  }
  return at;
}

}  // namespace

std::size_t next_token(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  while (at < text.size() && (text[at] == ',' || text[at] == ':')) {
    at = skip_blanks(text, at + 1);
  }
  return at;
}

std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    at += text[at] == '\\' ? 1 : 0;
  }
  return std::min(at + 1, text.size());
}

namespace {

// One explanation in progress.
class Explainer {
 public:
  Explainer(std::string_view text, const SyntaxContext& context, std::string_view parser_message)
      : text_(text), context_(context), parser_message_(parser_message) {}

  SyntaxProblem explain() const {
    const std::size_t at = skip_blanks(text_, context_.from);
    switch (context_.state) {
      case SyntaxState::before_root:
        return at == text_.size()
                   ? SyntaxProblem{at, "the file has no JSON value, only whitespace and comments"}
                   : bad_value(at);
      case SyntaxState::object_begun:
        return bad_key(at);
      case SyntaxState::array_begun:
        return bad_value(at);
      case SyntaxState::after_key:
        return peek(at) == ':' ? bad_value(skip_blanks(text_, at + 1))
                               : SyntaxProblem{at, "expected ':' between a key and its value"};
      case SyntaxState::after_value:
        return after_value(at);
    }
    return fallback(at);
  }

 private:
  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  bool in_object() const { return context_.open && text_[*context_.open] == '{'; }
  std::string_view container() const { return in_object() ? "object" : "array"; }
  char closing() const { return in_object() ? '}' : ']'; }

  std::size_t line_of(std::size_t offset) const {
    return static_cast<std::size_t>(
               std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n')) +
           1;
  }

  SyntaxProblem fallback(std::size_t at) const {
    return {at, fmt::format("not valid JSON ({})", parser_message_)};
  }

  SyntaxProblem ends_too_early(std::size_t at) const {
    if (!context_.open) {
      return {at, "the file ends where a value is expected"};
    }
    return {at, fmt::format("the file ends inside the {} that starts on line {}: a '{}' is missing",
                            container(), line_of(*context_.open), closing())};
  }

  SyntaxProblem after_value(std::size_t at) const {
    const char next = peek(at);
    if (at == text_.size()) {
      return ends_too_early(at);
    }
    if (const auto number = malformed_number(at)) {
      return *number;
    }
    if (!context_.open) {
      return {at, "text after the end of the scenario; a file holds one JSON object"};
    }
    if (next == ',') {
      const std::size_t after = skip_blanks(text_, at + 1);
      if (peek(after) == '}' || peek(after) == ']') {
        return {at, fmt::format("trailing comma: JSON does not allow one before '{}'", text_[after])};
      }
      return in_object() ? bad_key(after) : bad_value(after);
    }
    if (next == '}' || next == ']') {
      return wrong_bracket(at);
    }
    if (next == ':') {
      return {at, in_object() ? "unexpected ':'; a key in double quotes must come before it"
                              : "unexpected ':'; keys and values go inside { }, not [ ]"};
    }
    if (next == '"' || next == '{' || next == '[' || is_digit(next) || is_letter(next) || next == '-') {
      return {context_.from, fmt::format("expected ',' or '{}' after this value", closing())};
    }
    return bad_value(at);
  }

  // The parser reads "0" of "04" as a number and stops at "4", so the last token is not what it seems.
  std::optional<SyntaxProblem> malformed_number(std::size_t at) const {
    std::size_t begin = context_.from;
    while (begin > 0 && continues_number(text_[begin - 1])) {
      --begin;
    }
    const std::string_view token = text_.substr(begin, context_.from - begin);
    if (token.size() > 1 && token[0] == '0' && is_digit(token[1])) {
      return SyntaxProblem{begin, "JSON numbers have no leading zeros"};
    }
    if (token == "0" && at == context_.from && (peek(at) == 'x' || peek(at) == 'X')) {
      return SyntaxProblem{begin, "JSON has no hexadecimal numbers"};
    }
    if (!token.empty() && context_.open && peek(at) == closing()) {
      return SyntaxProblem{begin, fmt::format("{} is not a JSON number", token.substr(0, 40))};
    }
    return std::nullopt;
  }

  SyntaxProblem wrong_bracket(std::size_t at) const {
    if (!context_.open) {
      return {at, fmt::format("'{}' closes nothing", text_[at])};
    }
    return {at, fmt::format("'{}' cannot close the {} that starts on line {}: expected '{}'", text_[at],
                            container(), line_of(*context_.open), closing())};
  }

  SyntaxProblem bad_key(std::size_t at) const {
    const char next = peek(at);
    if (at == text_.size()) {
      return ends_too_early(at);
    }
    if (next == '"') {
      return bad_string(at);
    }
    if (next == '\'') {
      return {at, "keys are written in double quotes"};
    }
    if (is_letter(next)) {
      return {at, fmt::format("keys are written in double quotes: \"{}\"", word(at))};
    }
    if (next == ',') {
      return {at, "a member is missing before ','"};
    }
    if (next == ']') {
      return wrong_bracket(at);
    }
    if (is_digit(next) || next == '{' || next == '[') {
      return {at, "expected a key in double quotes"};
    }
    return stray(at);
  }

  SyntaxProblem bad_value(std::size_t at) const {
    const char next = peek(at);
    if (at == text_.size()) {
      return ends_too_early(at);
    }
    if (next == '"') {
      return bad_string(at);
    }
    if (next == '\'') {
      return {at, "strings are written in double quotes"};
    }
    if (is_digit(next) || next == '-' || next == '+' || next == '.') {
      return bad_number(at);
    }
    if (is_letter(next)) {
      return bad_word(at);
    }
    if (next == ',' || next == ':') {
      return {at, fmt::format("a value is missing before '{}'", next)};
    }
    if (next == '}' || next == ']') {
      const bool is_pair = context_.state == SyntaxState::after_key;
      return is_pair || next == closing()
                 ? SyntaxProblem{at, fmt::format("a value is missing before '{}'", next)}
                 : wrong_bracket(at);
    }
    return stray(at);
  }

  SyntaxProblem stray(std::size_t at) const {
    if (text_[at] == '#') {
      return {at, "comments start with // or are enclosed in /* and */"};
    }
    if (text_.substr(at, 2) == "/*") {
      return {at, "this comment is never closed: */ is missing"};
    }
    if (static_cast<unsigned char>(text_[at]) >= 0x80) {
      return {at, "unexpected character; JSON uses plain ASCII quotes and spaces"};
    }
    return {at, fmt::format("unexpected character '{}'", text_[at])};
  }

  std::string_view word(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) {
      ++end;
    }
    return text_.substr(at, std::min<std::size_t>(end - at, 40));
  }

  SyntaxProblem bad_word(std::size_t at) const {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> python{
        {{"True", "true"}, {"False", "false"}, {"None", "null"}, {"TRUE", "true"}, {"FALSE", "false"}}};
    const std::string_view found = word(at);
    for (const auto& [wrong, right] : python) {
      if (found == wrong) {
        return {at, fmt::format("{} is written {} in JSON", wrong, right)};
      }
    }
    if (found == "NaN" || found == "Infinity" || found == "nan" || found == "inf") {
      const std::string_view text = found == "NaN" || found == "nan" ? "nan" : "inf";
      return {at, fmt::format("JSON has no {}; write \"{}\", a string", found, text)};
    }
    return {at, fmt::format("{} is not a JSON value; strings are written in double quotes: \"{}\"", found,
                            found)};
  }

  SyntaxProblem bad_number(std::size_t at) const {
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with("+")) {
      return {at, "JSON numbers have no leading '+'"};
    }
    if (rest.starts_with(".") || rest.starts_with("-.")) {
      return {at, "JSON numbers start with a digit: write 0.5, not .5"};
    }
    if (parser_message_.find("out of range") != std::string_view::npos ||
        parser_message_.find("out_of_range") != std::string_view::npos) {
      return {at, "the number is too large"};
    }
    std::size_t end = at;
    while (end < text_.size() && (is_digit(text_[end]) || is_letter(text_[end]) || text_[end] == '.' ||
                                  text_[end] == '-' || text_[end] == '+')) {
      ++end;
    }
    return {at,
            fmt::format("{} is not a JSON number", text_.substr(at, std::min<std::size_t>(end - at, 40)))};
  }

  // Explains a string token that the parser refused: the first invalid part of it.
  SyntaxProblem bad_string(std::size_t at) const {
    constexpr std::string_view escapes = "\"\\/bfnrtu";
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '\n' || c == '\r') {
        return {at, "this string is not closed on its line; write a line break inside a string as \\n"};
      }
      if (static_cast<unsigned char>(c) < ' ') {
        return {i, "write a control character inside a string as an escape, such as \\t for a tab"};
      }
      if (c == '\\') {
        if (i + 1 < text_.size() && escapes.find(text_[i + 1]) == std::string_view::npos) {
          return {i, fmt::format("\\{} is not a JSON escape; write a backslash as \\\\", text_[i + 1])};
        }
        if (peek(i + 1) == 'u') {
          continue;
        }
        ++i;
      } else if (c == '"') {
        return {at,
                "invalid \\u escape in this string: \\u needs four hexadecimal digits, and surrogates come "
                "in pairs"};
      }
    }
    return {at, "this string is never closed"};
  }

  std::string_view text_;
  const SyntaxContext& context_;
  std::string_view parser_message_;
};

}  // namespace

SyntaxProblem explain_syntax_error(std::string_view text, const SyntaxContext& context,
                                   std::string_view parser_message) {
  return Explainer(text, context, parser_message).explain();
}

}  // namespace rollcall::scenario
