#include <fmt/format.h>

#include "scenarios/cli/shell/command_tree.h"

namespace rollcall::cli {
namespace {

constexpr const char* bash_script =
    R"(# bash completion for rollcall, written by `rollcall completion bash`: source it, or put it where
# bash-completion looks. Where it offers nothing, bash completes file names.

_rollcall() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= options places words i
  COMPREPLY=()
  # To bash, --format=text is three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} != -* ]]; then
      command=${{COMP_WORDS[i]}}
      break
    fi
  done
  case $command in
{commands}    *)
      options='{options}'
      places='{names}'
      ;;
  esac
  case $command:$previous in
{values}    *)
      words=$places
      [[ $current == -* ]] && words=$options
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}

complete -o default -F _rollcall rollcall
)";

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string option_names(const std::vector<Argument>& options) {
  std::vector<std::string> names;
  for (const Argument& option : options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return joined(names);
}

std::string bash_command_case(const CommandHelp& command) {
  std::vector<std::string> words;
  for (const Argument& place : command.places) {
    words.insert(words.end(), place.choices.begin(), place.choices.end());
  }
  return fmt::format("    {})\n      options='{}'\n      places='{}'\n      ;;\n", command.name,
                     option_names(command.options), joined(words));
}

// The values after an option: its choices, or values that only the user or the file system knows.
std::string value_case(const CommandHelp& command, const Argument& option) {
  std::vector<std::string> patterns;
  for (const std::string& name : option.names) {
    patterns.push_back(command.name + ":" + name);
  }
  const std::string action =
      option.choices.empty() ? "return" : fmt::format("words='{}'", joined(option.choices));
  return fmt::format("    {}) {} ;;\n", joined(patterns, " | "), action);
}

}  // namespace

std::string bash_completion(const CommandTree& tree) {
  std::string commands;
  std::string values;
  std::vector<std::string> names;
  for (const CommandHelp& command : tree.commands) {
    names.push_back(command.name);
    commands += bash_command_case(command);
    for (const Argument& option : command.options) {
      values += option.value.empty() ? "" : value_case(command, option);
    }
  }
  return fmt::format(bash_script, fmt::arg("commands", commands), fmt::arg("values", values),
                     fmt::arg("options", option_names(tree.options)), fmt::arg("names", joined(names)));
}

}  // namespace rollcall::cli
