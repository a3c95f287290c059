#pragma once

// A scope by number. Apart from ScopeTable, because every Op carries one and few look up its name.

#include <cstdint>

namespace rollcall {

using ScopeId = std::uint32_t;
inline constexpr ScopeId no_scope = 0;

}  // namespace rollcall
