#include "scenarios/cli/test_progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "viz/text_style.h"

namespace rollcall::cli {

namespace {

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// The line must not wrap, or the next one could not overwrite it.
std::string cut(const std::string& line, std::size_t width) {
  std::string text = line;
  while (viz::display_width(text) > width) {
    text.pop_back();
  }
  return text;
}

}  // namespace

void TestProgress::show(const std::string& newest, std::size_t done, std::size_t failed) {
  if (!shown_) {
    return;
  }
  const std::string failures = failed == 0 ? "" : fmt::format(", {} not as expected", failed);
  const std::string line = fmt::format("[{}/{}{}] {}", done, count_, failures, viz::printable(newest));
  std::fputs(("\r\x1b[K" + cut(line, terminal_width() - 1)).c_str(), stderr);
  is_on_screen_ = true;
}

void TestProgress::clear() {
  if (is_on_screen_) {
    std::fputs("\r\x1b[K", stderr);
    is_on_screen_ = false;
  }
}

}  // namespace rollcall::cli
