#include "scenarios/cli/cli.h"

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string_view>

#include <unistd.h>

#include "scenarios/cli/progress.h"
#include "viz/write_file.h"

namespace rollcall::cli {

void emit(const CommandLine& line, const std::string& text) {
  if (line.output.empty()) {
    viz::write_stdout(text);
  } else {
    viz::write_file(line.output, [&text](std::ostream& out) { out << text; });
  }
}

void remark(const std::string& text) {
  wipe_progress();
  std::fputs((text + "\n").c_str(), stderr);  // fmt::print would throw
}

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

bool wants_color(const CommandLine& line) {
  const bool is_terminal = line.output.empty() && ::isatty(STDOUT_FILENO) == 1;
  return viz::wants_color(line.color, {.is_terminal = is_terminal,
                                       .no_color = environment("NO_COLOR"),
                                       .term = environment("TERM"),
                                       .clicolor_force = environment("CLICOLOR_FORCE")});
}

}  // namespace rollcall::cli
