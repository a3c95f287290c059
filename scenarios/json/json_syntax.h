#pragma once

// Explains in words why text is not JSON: the mistakes that people make (a trailing comma, single
// quotes, Python's True), where the parser only says which token it did not expect.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rollcall::scenario {

// The first character at or after `at` that is not a blank, comma, colon, or comment.
std::size_t next_token(std::string_view text, std::size_t at);

// One past the closing quote of the string token that begins at `at`.
std::size_t string_end(std::string_view text, std::size_t at);

// The kind of the last valid token.
enum class SyntaxState : std::uint8_t { before_root, object_begun, array_begun, after_key, after_value };

struct SyntaxContext {
  SyntaxState state = SyntaxState::before_root;
  std::size_t from = 0;             // the end of the last valid token
  std::optional<std::size_t> open;  // position of the innermost open bracket
};

struct SyntaxProblem {
  std::size_t offset = 0;
  std::string message;
};

// `parser_message` is used if there is no better explanation.
SyntaxProblem explain_syntax_error(std::string_view text, const SyntaxContext& context,
                                   std::string_view parser_message);

}  // namespace rollcall::scenario
