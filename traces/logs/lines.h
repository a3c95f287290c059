#pragma once

// Reads a text line by line, and numbers in a line.

#include <optional>
#include <string_view>

#include "sim/c10d/op.h"

namespace rollcall::traces {

class Lines {
 public:
  explicit Lines(std::string_view bytes) : rest_(bytes) {}

  bool next() {
    if (rest_.empty()) {
      return false;
    }
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line_.ends_with('\r')) {
      line_.remove_suffix(1);
    }
    ++number_;
    return true;
  }

  std::string_view line() const { return line_; }
  std::int64_t number() const { return number_; }  // from 1
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  std::string_view line_;
  std::int64_t number_ = 0;
};

std::optional<std::int64_t> number_at(std::string_view text);
std::optional<std::int64_t> number_after(std::string_view line, std::string_view word);
// Return a number; empty if it cannot be a rank.
std::optional<Rank> rank_at(std::string_view text);
std::optional<Rank> rank_after(std::string_view line, std::string_view word);

bool contains(std::string_view text, std::string_view word);
std::string_view without_blanks(std::string_view text);

}  // namespace rollcall::traces
