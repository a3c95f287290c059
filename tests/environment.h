#pragma once

// Environment variables with which a user of the tests asks for more of them, or for different ones.

#include <cstdint>
#include <cstdlib>

namespace rollcall::test {

inline std::uint64_t number_from_environment(const char* name, std::uint64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

}  // namespace rollcall::test
