#pragma once

// The recorder's Python package (traces/recorder), which is part of the program: it works wherever the program is
// copied.

#include <span>
#include <string>
#include <string_view>

namespace rollcall::scenario {

struct EmbeddedFile {
  std::string_view name;  // its path in the package
  std::string_view text;
};

// All files of the package.
std::span<const EmbeddedFile> recorder_files();

// Writes the package into `folder`, and returns the path to start with Python. Throws std::system_error.
std::string unpack_recorder(const std::string& folder);

}  // namespace rollcall::scenario
