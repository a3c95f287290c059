#pragma once

// The last row of a terminal, kept for one line that is drawn again and again, while everything that the job writes
// scrolls above it.

#include <string>

namespace rollcall::watch {

class StatusRow {
 public:
  // True when `terminal`, a descriptor, is a terminal on which that works.
  static bool is_possible(int terminal);

  explicit StatusRow(int terminal) : terminal_(terminal) {}
  // Gives the row back.
  ~StatusRow();
  StatusRow(const StatusRow&) = delete;
  StatusRow& operator=(const StatusRow&) = delete;

  // What does not fit is cut off. `text` is plain ASCII.
  void draw(const std::string& text);

 private:
  void write(const std::string& bytes) const;

  int terminal_;
  int rows_ = 0;  // of the terminal when the row was taken; 0: it has not been
};

}  // namespace rollcall::watch
