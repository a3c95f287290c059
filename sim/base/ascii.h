#pragma once

// Digits, and the case of ASCII letters, which no locale changes. Loggers, tuners and people spell names as they like.

#include <algorithm>
#include <string>
#include <string_view>

namespace rollcall {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return lower(c); });
  return result;
}

constexpr bool is_same_letter(char a, char b) { return lower(a) == lower(b); }

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, is_same_letter);
}

constexpr bool contains_ignoring_case(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(), is_same_letter) != text.end() ||
         word.empty();
}

}  // namespace rollcall
