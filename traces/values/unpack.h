#pragma once

// Unpacks files packed with gzip, or with zstd if rollcall was built with it. The unpacked size is bounded: a few bytes
// can claim to be terabytes.

#include <cstddef>
#include <string>
#include <string_view>

namespace rollcall::traces {

bool is_packed(std::string_view bytes);
// True if rollcall was built with zstd.
bool reads_zstd();

// Returns what other packing this is, and the command that unpacks it: "a tar archive; unpack it first (tar -xf)".
// Empty if it is none.
std::string_view other_packing(std::string_view bytes);

// Returns the whole content of a packed file, kept in `into`, which never shrinks. Throws BadFile, with the offset in
// the packed bytes, if they are damaged or cut off, or if the content is larger than `bytes_max`.
std::string_view unpack(std::string_view packed, std::string& into, std::size_t bytes_max);

// Returns the first `size` bytes of it, or fewer if `packed` is only the beginning of a file, or is damaged.
std::string beginning_of_packed(std::string_view packed, std::size_t size);

}  // namespace rollcall::traces
