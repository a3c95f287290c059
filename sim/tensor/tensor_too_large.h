#pragma once

// There is no memory for the elements of one tensor. Nothing has changed, so a run can still be judged; after any other
// std::bad_alloc it cannot.

#include <new>

namespace rollcall {

struct TensorTooLarge : std::bad_alloc {
  const char* what() const noexcept override { return "not enough memory for the elements of a tensor"; }
};

}  // namespace rollcall
