#pragma once

// The last row of a terminal, reserved for one line that is redrawn repeatedly, while everything that the job writes
// scrolls above it.

#include <string>

namespace rollcall::watch {

class StatusRow {
 public:
  // True if `terminal`, a descriptor, is a terminal on which that works.
  static bool is_possible(int terminal);

  explicit StatusRow(int terminal) : terminal_(terminal) {}
  // Releases the row.
  ~StatusRow();
  StatusRow(const StatusRow&) = delete;
  StatusRow& operator=(const StatusRow&) = delete;

  // Cuts off what does not fit. `text` is plain ASCII.
  void draw(const std::string& text);

 private:
  void write(const std::string& bytes) const;

  int terminal_;
  int rows_ = 0;  // of the terminal when the row was reserved; 0: it was not
};

}  // namespace rollcall::watch
