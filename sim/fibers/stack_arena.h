#pragma once

// Stacks for a run's ranks: one reservation of address space, nothing resident until a rank runs.

#include <cstddef>
#include <optional>

namespace rollcall::sim {

class StackArena {
 public:
  // Address space per stack. A rank that formats text or throws needs up to 16 KiB; only touched pages
  // become resident, so more costs little. In very large worlds it does cost: page-table entries are
  // farther apart, and every rank's turn begins with a page walk (1.3 times the time at 100,000 ranks).
  static constexpr std::size_t bytes_each(std::size_t stacks) {
    return stacks <= guarded_max ? std::size_t{256} * 1024
           : stacks <= 32'768    ? std::size_t{64} * 1024
                                 : std::size_t{32} * 1024;
  }
  // With up to this many stacks, there is protected memory below each: a rank that needs more stack ends the process
  // with a message. A guard takes two of the 65,530 mappings that a process may have.
  static constexpr std::size_t guarded_max = 1024;
  static constexpr std::size_t guard_bytes = std::size_t{1024} * 1024;  // a local array may be as large

  // `stack_bytes`: of each stack, rounded up to pages; 0: the default. Throws std::bad_alloc when the address space
  // cannot be reserved.
  explicit StackArena(std::size_t stacks, std::size_t stack_bytes = 0);
  ~StackArena();
  StackArena(const StackArena&) = delete;
  StackArena& operator=(const StackArena&) = delete;

  struct Stack {
    std::byte* top;  // one past the highest usable byte
    std::size_t bytes;
  };

  // The i-th stack. Tops are shifted by up to 15 cache lines ("colors"): equal alignment would put the
  // hot lines of all ranks into the same few cache sets.
  Stack stack(std::size_t i) const;

  std::size_t stack_bytes() const { return stack_bytes_; }
  // The stack whose guard contains this address; null if there is none.
  std::optional<std::size_t> guarded_by(const void* address) const;

  // Frees the pages below `frame`, which is in the i-th stack. The stack may grow into them again, but nothing below
  // may be in use now.
  void give_back(std::size_t i, const void* frame) const;

  // Writes a known word at the low end of a stack, and checks it. Debug builds check at every suspension.
  void arm(std::size_t i) const;
  bool is_intact(std::size_t i) const;

 private:
  std::byte* low_end(std::size_t i) const { return base_ + i * stride_ + (stride_ - stack_bytes_); }

  std::byte* base_ = nullptr;
  std::size_t stack_bytes_;
  std::size_t stride_;  // a guard, where there is one, and the stack above it
  std::size_t bytes_;
};

}  // namespace rollcall::sim
