#pragma once

// Memory that runs out when a test says so. A program that links failing_new.cc gets its operator new.

#include <cstdint>

namespace rollcall::test {

enum class Shortage {
  once,      // one allocation fails, those after it do not
  for_good,  // and all after it
};

// While an object lives, the n-th allocation from now (from 0, of any thread) throws std::bad_alloc. One at a time.
class FailingNew {
 public:
  FailingNew(std::int64_t n, Shortage shortage);
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  ~FailingNew();

  // How many failed so far.
  static std::int64_t failures();
};

// Allocations that are not freed yet.
std::int64_t allocations_held();

}  // namespace rollcall::test
