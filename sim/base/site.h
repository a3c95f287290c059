#pragma once

// Where a call was made: a line of a rank program in C++, or of a scenario file.

#include <cstdint>
#include <source_location>
#include <string>

namespace rollcall {

struct Site {
  const char* file = nullptr;  // outlives the run: a literal, or owned by the scenario
  std::uint32_t line = 0;      // from 1; 0 means unknown
  std::uint32_t column = 0;

  static Site here(std::source_location where = std::source_location::current()) {
    return {where.file_name(), where.line(), where.column()};
  }

  explicit operator bool() const { return file != nullptr; }
};

// "train.json:12:7"; empty for an unknown site. Only the file's last path component is printed.
std::string to_string(const Site& site);

}  // namespace rollcall
