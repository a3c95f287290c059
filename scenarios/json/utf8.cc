#include "scenarios/json/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rollcall::scenario {

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::size_t character_start(std::string_view text, std::size_t offset) {
  while (offset > 0 && offset < text.size() && !begins_character(text[offset])) {
    --offset;
  }
  return offset;
}

namespace {

using Byte = unsigned char;

bool is_continuation(std::string_view text, std::size_t at) {
  return at < text.size() && !begins_character(text[at]);
}

// The length of the well-formed character at `at`, or 0. RFC 3629, section 4: the second byte of some
// leads has a narrower range, which rules out overlong forms, surrogates and what lies above U+10FFFF.
std::size_t character_length(std::string_view text, std::size_t at) {
  const Byte lead = static_cast<Byte>(text[at]);
  if (lead < 0x80) {
    return 1;
  }
  const std::size_t length = lead >= 0xc2 && lead <= 0xdf ? 2 : lead >= 0xe0 && lead <= 0xef ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text, at + i)) {
      return 0;
    }
  }
  const Byte second = static_cast<Byte>(text[at + 1]);
  const bool narrow = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return narrow ? 0 : length;
}

// Almost all text is ASCII: eight bytes at a time.
bool is_ascii_block(const char* bytes) {
  std::uint64_t block = 0;
  std::memcpy(&block, bytes, sizeof block);
  return (block & 0x8080808080808080U) == 0;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 8 <= text.size() && is_ascii_block(text.data() + at)) {
      at += 8;
      continue;
    }
    const std::size_t length = character_length(text, at);
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return at;
}

}  // namespace rollcall::scenario
