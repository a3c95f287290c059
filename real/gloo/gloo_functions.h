#pragma once

// The functions of a Gloo that is opened at run time. For each, CMake generates code that jumps to its address
// (cmake/open_later.cmake).

#include <span>

namespace rollcall::real {

// Their mangled names.
extern const std::span<const char* const> gloo_functions;

}  // namespace rollcall::real

// Their addresses, in the same order.
extern "C" void* rollcall_gloo_addresses[];
