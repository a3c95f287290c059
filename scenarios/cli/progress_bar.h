#pragma once

// How far a long piece of work has come: a line on standard error that is drawn again and again, and gone at the
// end. Only where standard error is a terminal, and only after half a second: most work is over by then.

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

namespace rollcall::cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();  // wipes the line

  // `done` of `all` things. May be called from any thread, and as often as one likes.
  void show(std::size_t done, std::size_t all);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool is_watched_;
  bool is_drawn_ = false;
  Clock::time_point next_;  // not drawn before
  std::mutex mutex_;
};

// "reading dumps  [#####.....]  512 of 1024".
std::string progress_line(const std::string& what, std::size_t done, std::size_t all);

}  // namespace rollcall::cli
