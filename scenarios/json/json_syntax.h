#pragma once

// What is wrong with text that is not JSON, in words: the mistakes people make (a trailing comma,
// single quotes, Python's True), where the parser only says which token it did not expect.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rollcall::scenario {

// The first character at or after `at` that is neither blank, comma, colon nor comment.
std::size_t next_token(std::string_view text, std::size_t at);

// One past the closing quote of the string token that begins at `at`.
std::size_t string_end(std::string_view text, std::size_t at);

// What the last good token was.
enum class SyntaxState : std::uint8_t { before_root, object_begun, array_begun, after_key, after_value };

struct SyntaxContext {
  SyntaxState state = SyntaxState::before_root;
  std::size_t from = 0;             // the end of the last good token
  std::optional<std::size_t> open;  // where the innermost open bracket stands
};

struct SyntaxProblem {
  std::size_t offset = 0;
  std::string message;
};

// `parser_message` is told when nothing better is known.
SyntaxProblem explain_syntax_error(std::string_view text, const SyntaxContext& context,
                                   std::string_view parser_message);

}  // namespace rollcall::scenario
