#include "sim/base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rollcall {

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::size_t character_start(std::string_view text, std::size_t offset) {
  while (offset > 0 && offset < text.size() && !begins_character(text[offset])) {
    --offset;
  }
  return offset;
}

// RFC 3629, section 4: the second byte of some leads has a narrower range, which rules out overlong forms, surrogates
// and code points above U+10FFFF.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const int lead = byte(0);
  if (lead < 0x80) {
    return text.empty() ? 0 : 1;
  }
  if (lead < 0xc2 || lead > 0xf4) {
    return 0;
  }
  const std::size_t length = lead <= 0xdf ? 2 : lead <= 0xef ? 3 : 4;
  const int least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const int most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < least || byte(1) > most) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) {
      return 0;
    }
  }
  return length;
}

namespace {

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
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return at;
}

}  // namespace rollcall
