#include <fmt/format.h>

#include "scenarios/cli/shell/command_tree.h"

namespace rollcall::cli {
namespace {

// Inside '...', fish has two escapes.
std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    result += (c == '\'' || c == '\\') ? fmt::format("\\{}", c) : std::string(1, c);
  }
  return result + "'";
}

// Option names for fish: -s for "-o", -l for "--output".
std::string names_of(const Argument& option) {
  std::string names;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    names += fmt::format(" {} {}", is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1));
  }
  return names;
}

// Whether a value follows, and of what kind.
std::string fish_value_of(const Argument& argument) {
  if (!argument.choices.empty()) {
    return fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(argument.choices, " "))));
  }
  return argument.is_path() ? " -r -F" : " -x";
}

std::string lines_of(const CommandHelp& command) {
  const std::string start =
      fmt::format("complete -c rollcall -n '__fish_seen_subcommand_from {}'", command.name);
  std::string lines;
  for (const Argument& option : command.options) {
    lines += fmt::format("{}{}{} -d {}\n", start, names_of(option),
                         option.value.empty() ? "" : fish_value_of(option), fish_quoted(option.help));
  }
  for (const Argument& place : command.places) {
    if (!place.choices.empty()) {
      lines +=
          fmt::format("{} -f -a {} -d {}\n", start,
                      fish_quoted(fmt::format("{}", fmt::join(place.choices, " "))), fish_quoted(place.help));
    } else if (place.is_path()) {
      lines += fmt::format("{} -F\n", start);
    }
  }
  return lines;
}

}  // namespace

std::string fish_completion(const CommandTree& tree) {
  std::string text =
      "# fish completion for rollcall, written by `rollcall completion fish`: a file rollcall.fish in\n"
      "# ~/.config/fish/completions.\n\n"
      "complete -c rollcall -f\n";
  for (const Argument& option : tree.options) {
    text += fmt::format("complete -c rollcall -n __fish_use_subcommand{} -d {}\n", names_of(option),
                        fish_quoted(option.help));
  }
  for (const CommandHelp& command : tree.commands) {
    text += fmt::format("\ncomplete -c rollcall -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fish_quoted(command.summary));
    text += lines_of(command);
  }
  return text;
}

}  // namespace rollcall::cli
