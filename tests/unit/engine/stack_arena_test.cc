#include "sim/fibers/stack_arena.h"

#include <cstdint>
#include <cstring>

#include "tests/catch.h"

namespace rollcall::sim::stack_arena_test {

TEST_CASE("stacks do not overlap", "[stack_arena]") {
  const StackArena arena(40);
  for (std::size_t i = 0; i + 1 < 40; ++i) {
    const StackArena::Stack here = arena.stack(i);
    const StackArena::Stack next = arena.stack(i + 1);
    CHECK(here.top <= next.top - next.bytes);
  }
}

TEST_CASE("stacks are aligned as a call frame wants, and staggered over the cache", "[stack_arena]") {
  const StackArena arena(16);
  const auto set_of = [&](std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(arena.stack(i).top) % 4096;
  };
  for (std::size_t i = 0; i < 16; ++i) {
    CHECK(set_of(i) % 64 == 0);
    for (std::size_t j = 0; j < i; ++j) {
      CHECK(set_of(i) != set_of(j));
    }
  }
}

TEST_CASE("every byte of a stack can be written", "[stack_arena]") {
  const StackArena arena(3);
  for (std::size_t i = 0; i < 3; ++i) {
    const StackArena::Stack stack = arena.stack(i);
    std::memset(stack.top - stack.bytes, 0x5a, stack.bytes);
    CHECK(static_cast<int>(stack.top[-1]) == 0x5a);
  }
}

TEST_CASE("a stack that was used to its end is noticed", "[stack_arena]") {
  const StackArena arena(2);
  arena.arm(0);
  arena.arm(1);
  const StackArena::Stack stack = arena.stack(1);
  CHECK(arena.is_intact(1));
  std::memset(stack.top - 1000, 0, 1000);
  CHECK(arena.is_intact(1));
  std::memset(stack.top - stack.bytes, 0, 8);
  CHECK_FALSE(arena.is_intact(1));
  CHECK(arena.is_intact(0));
}

TEST_CASE("address space for very many stacks costs nothing until it is used", "[stack_arena]") {
  const StackArena arena(200'000);
  CHECK(arena.stack(199'999).bytes > 16 * 1024);
  CHECK(arena.stack(0).top < arena.stack(199'999).top);
}

TEST_CASE("pages below a frame are given back, and those above stay", "[stack_arena]") {
  const StackArena arena(2);
  const StackArena::Stack stack = arena.stack(0);
  arena.arm(0);
  *(stack.top - 16384) = std::byte{1};
  *(stack.top - 64) = std::byte{2};
  *(arena.stack(1).top - 64) = std::byte{3};
  arena.give_back(0, stack.top - 1024);
  CHECK(*(stack.top - 16384) == std::byte{0});
  CHECK(*(stack.top - 64) == std::byte{2});
  CHECK(*(arena.stack(1).top - 64) == std::byte{3});
  CHECK(arena.is_intact(0));
}

}  // namespace rollcall::sim::stack_arena_test
