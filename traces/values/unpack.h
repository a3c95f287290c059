#pragma once

// Files packed with gzip, or with zstd where rollcall was built with it. What they unpack to is bounded: a few bytes
// can claim to be terabytes.

#include <cstddef>
#include <string>
#include <string_view>

namespace rollcall::traces {

bool is_packed(std::string_view bytes);
// Whether zstd was there when rollcall was built.
bool reads_zstd();

// All that a packed file holds, kept in `into`, which only ever grows. Throws BadFile, with the offset in the packed
// bytes, where these are damaged or cut off, and beyond `bytes_max`.
std::string_view unpack(std::string_view packed, std::string& into, std::size_t bytes_max);

// The first `size` bytes of it, or fewer where `packed` is but a beginning, or is damaged.
std::string beginning_of_packed(std::string_view packed, std::size_t size);

}  // namespace rollcall::traces
