#include "scenarios/cli/cli.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <ostream>
#include <string_view>

#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "scenarios/cli/terminal/progress.h"
#include "viz/base/text_style.h"
#include "viz/base/write_file.h"

namespace rollcall::cli {

void emit(const CommandLine& line, const std::string& text) {
  if (line.output.empty()) {
    viz::write_stdout(line.format == Format::text ? viz::without_commands(text) : text);
  } else {
    viz::write_file(line.output, [&text](std::ostream& out) { out << text; });
  }
}

void remark(std::string_view text) noexcept {
  try {
    const std::string safe = viz::without_commands(viz::printable_lines(text));
    remark({std::string_view(safe)});
  } catch (const std::bad_alloc&) {
    remark({text});
  }
}

// Uses one write, so that lines of several processes stay whole, and no memory, because the message may be that memory
// has run out.
void remark(std::initializer_list<std::string_view> parts) noexcept {
  std::array<iovec, 8> pieces;
  std::size_t used = 0;
  for (const std::string_view part : parts) {
    pieces.at(used++) = {const_cast<char*>(part.data()), part.size()};  // writev only reads it
  }
  pieces.at(used++) = {const_cast<char*>("\n"), 1};
  wipe_progress();
  [[maybe_unused]] const auto written = ::writev(STDERR_FILENO, pieces.data(), static_cast<int>(used));
}

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

bool wants_color(const CommandLine& line, int stream) {
  const bool is_terminal = line.output.empty() && ::isatty(stream) == 1;
  return viz::wants_color(line.color, {.is_terminal = is_terminal,
                                       .no_color = environment("NO_COLOR"),
                                       .term = environment("TERM"),
                                       .clicolor_force = environment("CLICOLOR_FORCE")});
}

viz::TextStyle text_style(const CommandLine& line) {
  viz::TextStyle style{line.detail, wants_color(line)};
  constexpr std::size_t least = 60;
  winsize size{};
  if (line.output.empty() && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.width = std::clamp<std::size_t>(size.ws_col, least, viz::TextStyle::usual_width);
  }
  return style;
}

}  // namespace rollcall::cli
