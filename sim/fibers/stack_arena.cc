#include "sim/fibers/stack_arena.h"

#include <cstdint>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace rollcall::sim {
namespace {

constexpr std::size_t colors = 16;
constexpr std::size_t cache_line = 64;
constexpr std::uint64_t canary = 0x726f6c6c63616c6cULL;

}  // namespace

StackArena::StackArena(std::size_t stacks) : stack_bytes_(bytes_each(stacks)), bytes_(stacks * stack_bytes_) {
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  base_ = static_cast<std::byte*>(memory);
  // A huge page would make 2 MiB resident for the sake of one 4 KiB page of each stack. Advice only:
  // a kernel without huge pages refuses it, and nothing is lost.
  static_cast<void>(madvise(base_, bytes_, MADV_NOHUGEPAGE));
}

StackArena::~StackArena() { munmap(base_, bytes_); }

StackArena::Stack StackArena::stack(std::size_t i) const {
  const std::size_t usable = stack_bytes_ - (i % colors) * cache_line;
  return {base_ + i * stack_bytes_ + usable, usable};
}

void StackArena::give_back(std::size_t i, const void* frame) const {
  constexpr std::uintptr_t page = 4096;
  constexpr std::uintptr_t in_use = 512;  // of the call into the kernel
  const auto low = reinterpret_cast<std::uintptr_t>(base_ + i * stack_bytes_) + page;  // the canary stays
  const std::uintptr_t high = (reinterpret_cast<std::uintptr_t>(frame) - in_use) & ~(page - 1);
  if (high > low) {
    static_cast<void>(madvise(reinterpret_cast<void*>(low), high - low, MADV_DONTNEED));  // advice only
  }
}

void StackArena::arm(std::size_t i) const { std::memcpy(base_ + i * stack_bytes_, &canary, sizeof canary); }

bool StackArena::is_intact(std::size_t i) const {
  return std::memcmp(base_ + i * stack_bytes_, &canary, sizeof canary) == 0;
}

}  // namespace rollcall::sim
