#pragma once

// Block: a part of a Program's code.

#include <cstdint>

namespace rollcall::scenario {

// Index into Program::code.
using Address = std::uint32_t;

// [begin, end).
struct Block {
  Address begin = 0;
  Address end = 0;
};

}  // namespace rollcall::scenario
