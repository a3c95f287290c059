#pragma once

// One line on the terminal that says how far a test run is. Nothing where nobody looks.

#include <cstddef>
#include <string>

namespace rollcall::cli {

class TestProgress {
 public:
  // `shown`: standard error is a terminal and the user wants to see it.
  TestProgress(bool shown, std::size_t count) : shown_(shown), count_(count) {}
  TestProgress(const TestProgress&) = delete;
  TestProgress& operator=(const TestProgress&) = delete;
  ~TestProgress() { clear(); }

  void show(const std::string& newest, std::size_t done, std::size_t failed);
  // Before anything else is printed.
  void clear();

 private:
  bool shown_;
  std::size_t count_;
  bool is_on_screen_ = false;
};

}  // namespace rollcall::cli
