#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// A line of a source file that was available.
struct SourceLine {
  std::string site;         // as in calls: "train.py:12"
  std::string path;         // of the file, as it was given: "jobs/train.py"
  std::int64_t line = 0;    // from 1
  std::int64_t column = 0;  // from 1; 0: not known
  std::string text;         // without its line break
};

}  // namespace rollcall
