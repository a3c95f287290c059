#pragma once

// Stacks for a run's ranks: one reservation of address space, nothing resident until a rank runs.

#include <cstddef>

namespace rollcall::sim {

class StackArena {
 public:
  // 64 KiB of address space each: a rank that formats text or throws needs up to 16; the rest is free
  // because only touched pages become resident.
  static constexpr std::size_t stack_bytes = 64 * 1024;

  // Throws std::bad_alloc when the address space cannot be reserved.
  explicit StackArena(std::size_t stacks);
  ~StackArena();
  StackArena(const StackArena&) = delete;
  StackArena& operator=(const StackArena&) = delete;

  struct Stack {
    std::byte* top;  // one past the highest usable byte
    std::size_t bytes;
  };

  // The i-th stack. Tops are shifted by up to 15 cache lines ("colours"): equal alignment would put the
  // hot lines of all ranks into the same few cache sets.
  Stack stack(std::size_t i) const;

  // Writes a known word at the low end of a stack, and checks it. Debug builds check at every suspension.
  void arm(std::size_t i) const;
  bool is_intact(std::size_t i) const;

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rollcall::sim
