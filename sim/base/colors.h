#pragma once

// The sequences with which programs color a terminal.

#include <cstddef>
#include <string_view>

namespace rollcall {

// How each of them begins.
inline constexpr std::string_view color_begin = "\x1b[";

// The length of a sequence such as "\x1b[1;31m" at the beginning of `text`, or 0.
inline std::size_t color_length(std::string_view text) {
  if (!text.starts_with(color_begin)) {
    return 0;
  }
  const std::size_t end = text.find_first_not_of("0123456789;", color_begin.size());
  return end == std::string_view::npos ? text.size() : end + 1;
}

}  // namespace rollcall
