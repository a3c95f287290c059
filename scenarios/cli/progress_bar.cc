#include "scenarios/cli/progress_bar.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace rollcall::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto first_look = 500ms;
constexpr auto between_looks = 100ms;
constexpr std::size_t cells = 30;

// A terminal that is gone is nobody's loss.
void write_to_terminal(const std::string& text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

ProgressBar::ProgressBar(std::string what)
    : what_(std::move(what)), is_watched_(::isatty(STDERR_FILENO) != 0), next_(Clock::now() + first_look) {}

ProgressBar::~ProgressBar() {
  if (is_drawn_) {
    write_to_terminal("\r\x1b[K");
  }
}

void ProgressBar::show(std::size_t done, std::size_t all) {
  if (!is_watched_) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now < next_) {
    return;
  }
  next_ = now + between_looks;
  is_drawn_ = true;
  write_to_terminal("\r" + progress_line(what_, done, all) + "\x1b[K");
}

std::string progress_line(const std::string& what, std::size_t done, std::size_t all) {
  const std::size_t full = all == 0 ? 0 : std::min(cells, done * cells / all);
  return fmt::format("{}  [{}{}]  {} of {}", what, std::string(full, '#'), std::string(cells - full, '.'),
                     done, all);
}

}  // namespace rollcall::cli
