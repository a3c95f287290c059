#pragma once

// How far a long command has come: a line on standard error that is drawn again and again, and gone at the end. Only on
// a terminal, or with --progress, which writes lines for a log instead; and only after half a second: most work is over
// by then.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "scenarios/cli/terminal/progress_wish.h"

namespace rollcall::sim {
struct Progress;
}

namespace rollcall::cli {

class Progress {
 public:
  // `what` is shown until there is more to say.
  Progress(ProgressWish wish, std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // wipes the line

  // Whether it would show anything at all.
  bool is_watched() const { return place_ != Place::nowhere; }
  // What is to be seen from now on. From any thread, and as often as one likes.
  void say(std::string what);
  // Wipes the line, because something else is about to be printed there.
  void clear();

 private:
  enum class Place { nowhere, terminal, log };

  void draw_at_times(const std::stop_token& over);
  void draw();

  Place place_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread artist_;  // the last member: it uses the others
};

// For handlers of signals: wipes what is drawn.
void wipe_progress() noexcept;

// "reading dumps  [#####.....]  512 of 1024".
std::string bar_text(const std::string& what, std::size_t done, std::size_t all);

// "running train.json: 1200000 calls, 5 of 8 ranks done, 1.2 s simulated".
std::string run_text(const std::string& what, const sim::Progress& progress, std::int64_t ranks);

}  // namespace rollcall::cli
