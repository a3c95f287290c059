#include "tests/allocation/failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace rollcall::test {

namespace {

// Far from both limits: nothing fails.
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 2;

std::atomic<std::int64_t> until_failure = never;  // negative: it has failed
std::atomic<bool> fails_for_good = false;
std::atomic<std::int64_t> failed = 0;
std::atomic<std::int64_t> held = 0;

bool fails_now() {
  const std::int64_t left = until_failure.fetch_sub(1, std::memory_order_relaxed);
  const bool fails = left == 0 || (left < 0 && fails_for_good);
  failed += fails ? 1 : 0;
  return fails;
}

void* allocated(void* memory) {
  if (memory == nullptr) {
    if (const std::new_handler handler = std::get_new_handler()) {
      handler();  // throws, or has freed memory: the same for a test
    }
    throw std::bad_alloc();
  }
  ++held;
  return memory;
}

void release(void* memory) {
  held -= memory != nullptr ? 1 : 0;
  std::free(memory);
}

}  // namespace

FailingNew::FailingNew(std::int64_t n, Shortage shortage) {
  failed = 0;
  fails_for_good = shortage == Shortage::for_good;
  until_failure = n;
}

FailingNew::~FailingNew() {
  until_failure = never;
  fails_for_good = false;
}

std::int64_t FailingNew::failures() { return failed; }

std::int64_t allocations_held() { return held; }

}  // namespace rollcall::test

// The other forms of new and delete call these ones.

void* operator new(std::size_t size) {
  using namespace rollcall::test;
  return allocated(fails_now() ? nullptr : std::malloc(size == 0 ? 1 : size));
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  using namespace rollcall::test;
  const auto align = static_cast<std::size_t>(alignment);
  return allocated(fails_now() ? nullptr : std::aligned_alloc(align, (size + align - 1) / align * align));
}

void operator delete(void* memory) noexcept { rollcall::test::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { rollcall::test::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { rollcall::test::release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  rollcall::test::release(memory);
}
