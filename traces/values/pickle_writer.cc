#include "traces/values/pickle_writer.h"

#include <bit>

namespace rollcall::traces {

void PickleWriter::pair(std::string_view first, std::string_view second) {
  text(first);
  text(second);
  bytes_ += '\x86';
}

void PickleWriter::text(std::string_view value) {
  const auto [place, is_new] = memo_.emplace(value, static_cast<std::uint32_t>(memo_.size()));
  const std::uint32_t index = place->second;
  if (is_new) {
    bytes_ += 'X';
    little_endian(value.size(), 4);
    bytes_ += value;
  }
  if (index < 256) {
    bytes_ += is_new ? 'q' : 'h';
    little_endian(index, 1);
  } else {
    bytes_ += is_new ? 'r' : 'j';
    little_endian(index, 4);
  }
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) {
    bytes_ += 'K';
    little_endian(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value < 65536) {
    bytes_ += 'M';
    little_endian(static_cast<std::uint64_t>(value), 2);
  } else if (value == static_cast<std::int32_t>(value)) {
    bytes_ += 'J';
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    bytes_ += "\x8a\x08";
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::real(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  bytes_ += 'G';
  for (int shift = 56; shift >= 0; shift -= 8) {  // big-endian, unlike the rest
    bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
}

void PickleWriter::little_endian(std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) {
    bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
}

}  // namespace rollcall::traces
