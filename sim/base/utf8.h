#pragma once

// The little of UTF-8 that reading and quoting texts needs.

#include <cstddef>
#include <string_view>

namespace rollcall {

// False for a continuation byte.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

// Characters (code points) in valid UTF-8.
std::size_t count_characters(std::string_view text);

// The start of the character that byte `offset` belongs to.
std::size_t character_start(std::string_view text, std::size_t offset);

// The length of the well-formed character that `text` begins with; 0 when it begins with none.
std::size_t character_length(std::string_view text);

// The first byte that is not part of well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates,
// nothing above U+10FFFF), or the size of the text.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace rollcall
