#pragma once

// The number of a scope. Separate from ScopeTable, because every Op carries one and few callers look up its name.

#include <cstdint>

namespace rollcall {

using ScopeId = std::uint32_t;
inline constexpr ScopeId no_scope = 0;

}  // namespace rollcall
