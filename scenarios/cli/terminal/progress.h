#pragma once

// Shows the progress of a long command: a line on standard error that is redrawn, and wiped at the end. Only on
// a terminal, or with --progress, which writes lines for a log instead; and only after half a second, because most work
// is done by then.

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
  // `what` is shown until say() replaces it.
  Progress(ProgressWish wish, std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // wipes the line

  // True if it shows anything at all.
  bool is_watched() const { return place_ != Place::nowhere; }
  // Sets the text. May be called from any thread, as often as needed.
  void say(std::string what);
  // Wipes the line before other output is printed there.
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

// For signal handlers: wipes the line if it is drawn.
void wipe_progress() noexcept;

// "reading dumps  [#####.....]  512 of 1024".
std::string bar_text(const std::string& what, std::size_t done, std::size_t all);

// "running train.json: 1200000 calls, 5 of 8 ranks done, 1.2 s simulated".
std::string run_text(const std::string& what, const sim::Progress& progress, std::int64_t ranks);

}  // namespace rollcall::cli
