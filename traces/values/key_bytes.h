#pragma once

// Serializes small values to the bytes that an Interner compares.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rollcall::traces {

class Key {
 public:
  void clear() { bytes_.clear(); }
  void put(std::string_view text) {
    put(static_cast<std::int64_t>(text.size()));
    bytes_.append(text);
  }
  void put(std::int64_t number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    bytes_.append(raw, sizeof raw);
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace rollcall::traces
