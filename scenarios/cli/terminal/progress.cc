#include "scenarios/cli/terminal/progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sim/engine/simulate.h"
#include "viz/base/text_style.h"
#include "viz/rows/phrases.h"

namespace rollcall::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto first_look = 500ms;
constexpr auto between_looks = 100ms;
constexpr auto between_lines = 10s;  // of a log
constexpr std::string_view wiped = "\r\x1b[K";

std::atomic<bool> is_drawn = false;  // on the terminal
static_assert(std::atomic<bool>::is_always_lock_free, "a handler of signals reads it");

// Ignores write errors: the terminal may be gone.
void write_to_terminal(std::string_view text) noexcept {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// The line must not wrap, or the next one could not overwrite it.
std::string cut(std::string text, std::size_t width) {
  while (viz::display_width(text) > width) {
    text.pop_back();
  }
  return text;
}

}  // namespace

Progress::Progress(ProgressWish wish, std::string what) : what_(std::move(what)) {
  const bool has_terminal = ::isatty(STDERR_FILENO) == 1;
  place_ = has_terminal && (wish.is_wanted || !wish.is_quiet) ? Place::terminal
           : wish.is_wanted                                   ? Place::log
                                                              : Place::nowhere;
  if (is_watched()) {
    artist_ = std::jthread([this](const std::stop_token& over) { draw_at_times(over); });
  }
}

Progress::~Progress() {
  if (is_watched()) {
    artist_.request_stop();
    artist_.join();
    wipe_progress();
  }
}

void Progress::say(std::string what) {
  if (is_watched()) {
    const std::scoped_lock lock(mutex_);
    what_ = std::move(what);
  }
}

void Progress::clear() {
  const std::scoped_lock lock(mutex_);
  wipe_progress();
}

void Progress::draw_at_times(const std::stop_token& over) {
  std::unique_lock lock(mutex_);
  const auto never = [] { return false; };
  over_.wait_for(lock, over, first_look, never);
  while (!over.stop_requested()) {
    draw();
    over_.wait_for(lock, over,
                   place_ == Place::log ? std::chrono::milliseconds(between_lines) : between_looks, never);
  }
}

void Progress::draw() {
  if (place_ == Place::log) {
    write_to_terminal(fmt::format("rollcall: {}\n", viz::printable(what_)));
    return;
  }
  is_drawn = true;
  write_to_terminal(fmt::format("{}{}", wiped, cut(viz::printable(what_), terminal_width() - 1)));
}

void wipe_progress() noexcept {
  if (is_drawn.exchange(false)) {
    write_to_terminal(wiped);
  }
}

std::string bar_text(const std::string& what, std::size_t done, std::size_t all) {
  constexpr std::size_t cells = 30;
  const std::size_t full = all == 0 ? 0 : std::min(cells, done * cells / all);
  return fmt::format("{}  [{}{}]  {} of {}", what, std::string(full, '#'), std::string(cells - full, '.'),
                     done, all);
}

std::string run_text(const std::string& what, const sim::Progress& progress, std::int64_t ranks) {
  return fmt::format("{}: {}, {} of {} done, {} simulated", what, viz::count_phrase(progress.ops, "call"),
                     progress.ended, viz::count_phrase(ranks, "rank"),
                     viz::duration_phrase(progress.simulated_time));
}

}  // namespace rollcall::cli
