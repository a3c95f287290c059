#include "sim/fibers/stack_arena.h"

#include <cstdint>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace rollcall::sim {
namespace {

constexpr std::size_t colors = 16;
constexpr std::size_t page = 4096;
constexpr std::size_t cache_line = 64;
constexpr std::uint64_t canary = 0x726f6c6c63616c6cULL;

}  // namespace

StackArena::StackArena(std::size_t stacks, std::size_t stack_bytes)
    : stack_bytes_(stack_bytes == 0 ? bytes_each(stacks) : (stack_bytes + page - 1) / page * page),
      stride_(stack_bytes_ + (stacks <= guarded_max ? guard_bytes : 0)),
      bytes_(stacks * stride_) {
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  base_ = static_cast<std::byte*>(memory);
  // A huge page would make 2 MiB resident for the sake of one 4 KiB page of each stack. This is advice only:
  // a kernel without huge pages refuses it, and nothing is lost.
  static_cast<void>(madvise(base_, bytes_, MADV_NOHUGEPAGE));
  for (std::size_t i = 0; i < stacks && stride_ > stack_bytes_; ++i) {
    static_cast<void>(
        mprotect(base_ + i * stride_, stride_ - stack_bytes_, PROT_NONE));  // else it goes unnoticed
  }
}

StackArena::~StackArena() { munmap(base_, bytes_); }

StackArena::Stack StackArena::stack(std::size_t i) const {
  const std::size_t usable = stack_bytes_ - (i % colors) * cache_line;
  return {low_end(i) + usable, usable};
}

std::optional<std::size_t> StackArena::guarded_by(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto first = reinterpret_cast<std::uintptr_t>(base_);
  if (at < first || at >= first + bytes_ || (at - first) % stride_ >= stride_ - stack_bytes_) {
    return std::nullopt;
  }
  return (at - first) / stride_;
}

void StackArena::give_back(std::size_t i, const void* frame) const {
  constexpr std::uintptr_t in_use = 512;                                 // of the call into the kernel
  const auto low = reinterpret_cast<std::uintptr_t>(low_end(i)) + page;  // the canary stays
  const std::uintptr_t high = (reinterpret_cast<std::uintptr_t>(frame) - in_use) & ~(page - 1);
  if (high > low) {
    static_cast<void>(madvise(reinterpret_cast<void*>(low), high - low, MADV_DONTNEED));  // advice only
  }
}

void StackArena::arm(std::size_t i) const { std::memcpy(low_end(i), &canary, sizeof canary); }

bool StackArena::is_intact(std::size_t i) const {
  return std::memcmp(low_end(i), &canary, sizeof canary) == 0;
}

}  // namespace rollcall::sim
