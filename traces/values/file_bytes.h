#pragma once

// The bytes of a file, unpacked if it is packed.

#include <cstddef>
#include <string>
#include <string_view>

namespace rollcall::traces {

// Reads whole files into memory that is reused for one file after the other. Files are read rather than mapped: if
// another process truncates a mapped file, reading it ends the program with a signal.
class FileBytes {
 public:
  static constexpr std::size_t bytes_max = std::size_t{1} << 30;  // unpacked

  // Valid until the next call. Throws BadFile.
  std::string_view read(const std::string& path);

 private:
  std::string raw_;
  std::string unpacked_;
};

}  // namespace rollcall::traces
