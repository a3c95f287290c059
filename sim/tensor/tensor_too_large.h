#pragma once

// Thrown when there is no memory for the elements of one tensor. Nothing has changed by then, so a run can still be
// judged; after any other std::bad_alloc it cannot.

#include <new>

namespace rollcall {

struct TensorTooLarge : std::bad_alloc {
  const char* what() const noexcept override { return "not enough memory for the elements of a tensor"; }
};

}  // namespace rollcall
