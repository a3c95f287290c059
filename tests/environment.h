#pragma once

// What whoever starts the tests asks for: more of them, others of them.

#include <cstdint>
#include <cstdlib>

namespace rollcall::test {

inline std::uint64_t number_from_environment(const char* name, std::uint64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

}  // namespace rollcall::test
