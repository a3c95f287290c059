#pragma once

// Lets memory run out when a test says so. A program that links failing_new.cc gets its operator new.

#include <cstdint>

namespace rollcall::test {

enum class Shortage {
  once,      // one allocation fails, later ones do not
  for_good,  // one allocation and all after it fail
};

// While an object lives, the n-th allocation from now (from 0, of any thread) throws std::bad_alloc. Only one object
// may live at a time.
class FailingNew {
 public:
  FailingNew(std::int64_t n, Shortage shortage);
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  ~FailingNew();

  // Returns how many allocations have failed so far.
  static std::int64_t failures();
};

// Returns the number of allocations that are not freed yet.
std::int64_t allocations_held();

}  // namespace rollcall::test
