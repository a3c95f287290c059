#pragma once

// Moving many elements at once.

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/tensor/tensor.h"

namespace rollcall {

// Fills `bytes`, a multiple of `size`, with elements of that many bytes.
void fill_elements(std::span<std::byte> bytes, Bits value, std::size_t size);

// Copies `count` elements from index `from` of `source` to index `to` of `target`, which becomes dense. Both have the
// same dtype, and neither is meta; they may be the same storage.
void copy_elements(Storage& target, std::int64_t to, const Storage& source, std::int64_t from,
                   std::int64_t count);

}  // namespace rollcall
