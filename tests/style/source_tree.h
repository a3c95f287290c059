#pragma once

// The repository's own C++ files as text, for tests about how they are written.

#include <string>
#include <string_view>
#include <vector>

namespace rollcall::test {

struct SourceFile {
  std::string path;                // from the repository root: "sim/c10d/op.h"
  std::vector<std::string> lines;  // unchanged
  std::vector<std::string> code;   // the same lines; comments and the insides of literals are spaces

  bool is_header() const { return path.ends_with(".h"); }
  // "sim/dist" for "sim/c10d/op.h", and also for the umbrella "sim/dist.h".
  std::string folder() const;
};

std::string folder_of(std::string_view path);

// Splits `text` into lines and blanks what is not code.
SourceFile parse_source(std::string path, const std::string& text);

// Returns every .h and .cc file below the source folders, sorted by path. Reads them only once.
const std::vector<SourceFile>& source_tree();

// The paths of quoted includes with their line numbers.
struct Include {
  std::string path;
  std::size_t line = 0;  // from 1
  bool quoted = true;    // "..." rather than <...>
};
std::vector<Include> includes_of(const SourceFile& file);

}  // namespace rollcall::test
