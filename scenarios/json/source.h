#pragma once

// SourceText: the text of one file, and positions in it for people.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::scenario {

struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;  // in characters; in bytes on very long lines

  friend bool operator==(const Position&, const Position&) = default;
};

class SourceText {
 public:
  // Larger files are refused: offsets are 32 bits, and a scenario of this size is a mistake.
  static constexpr std::size_t bytes_max = std::size_t{1} << 30;

  // `name` is the file's name in messages.
  SourceText(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }

  // O(log lines). An offset at the end of the text is allowed.
  Position position(std::size_t offset) const;
  // The line of `offset`, with a caret below it. Long lines are cut to the part around the caret, and control
  // characters are blanked.
  std::string excerpt(std::size_t offset) const;

 private:
  std::size_t line_of(std::size_t offset) const;
  std::string_view line_text(std::size_t line) const;

  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> line_starts_;  // ascending; the first is 0
};

// Reads a scenario file. Throws InvalidScenario if there is no such file, or if it is a directory or a
// device, empty, too large, not UTF-8 text, or a pipe through which nothing comes. "-" is standard input.
SourceText read_source(const std::string& path);

// The same checks for text that is already in memory.
SourceText check_source(std::string name, std::string text);

}  // namespace rollcall::scenario
