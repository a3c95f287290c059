#include "scenarios/watch/status_row.h"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/core.h>

namespace rollcall::watch {

namespace {

constexpr int rows_min = 4;

// The job's cursor stays where it is: every sequence saves the cursor and restores it (DECSC, DECRC), and all rows but
// the last scroll (DECSTBM). See ECMA-48 and the VT100 User Guide, chapter 3.
constexpr std::string_view save = "\0337";
constexpr std::string_view restore = "\0338";

winsize size_of(int terminal) {
  winsize size = {};
  return ::ioctl(terminal, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

}  // namespace

bool StatusRow::is_possible(int terminal) {
  const char* kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || std::string_view(kind) == "dumb" || *kind == '\0';
  return ::isatty(terminal) == 1 && !is_dumb && size_of(terminal).ws_row >= rows_min;
}

StatusRow::~StatusRow() {
  if (rows_ > 0) {
    write(fmt::format("{0}\033[{1};1H\033[2K\033[r{2}", save, rows_, restore));
  }
}

void StatusRow::draw(const std::string& text) {
  const winsize size = size_of(terminal_);
  if (size.ws_row < rows_min || size.ws_col == 0) {
    return;
  }
  if (size.ws_row != rows_) {
    rows_ = size.ws_row;
    // A line feed makes room if the cursor is in the last row.
    write(fmt::format("\n{0}\033[1;{1}r{2}\033[1A", save, rows_ - 1, restore));
  }
  write(fmt::format("{0}\033[{1};1H\033[2K\033[7m{2}\033[0m{3}", save, rows_, text.substr(0, size.ws_col),
                    restore));
}

// In one call, so that the job's own output does not come between.
void StatusRow::write(const std::string& bytes) const {
  const ssize_t written = ::write(terminal_, bytes.data(), bytes.size());
  static_cast<void>(written);  // there is nothing to report to: the terminal itself is gone
}

}  // namespace rollcall::watch
