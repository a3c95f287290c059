#pragma once

// Moving many elements at once.

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/tensor/tensor.h"

namespace rollcall {

// Fills `bytes`, a multiple of `size`, with elements of that many bytes.
void fill_elements(std::span<std::byte> bytes, Bits value, std::size_t size);

// `count` elements of `source` from `from` on become those of `target` from `to` on, which becomes dense. Both have
// one dtype, and neither is meta; they may be the same.
void copy_elements(Storage& target, std::int64_t to, const Storage& source, std::int64_t from,
                   std::int64_t count);

}  // namespace rollcall
