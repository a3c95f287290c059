#pragma once

// Reads a text that is a number and nothing else.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace rollcall {

// Empty for an empty text, for one with blanks or a plus sign, and for a number that does not fit the type.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace rollcall
