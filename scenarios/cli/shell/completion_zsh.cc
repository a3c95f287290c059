#include <fmt/format.h>

#include "scenarios/cli/shell/command_tree.h"

namespace rollcall::cli {
namespace {

constexpr const char* zsh_script = R"(#compdef rollcall
# zsh completion for rollcall, written by `rollcall completion zsh`: a file _rollcall in a folder of $fpath.

_rollcall() {{
  local curcontext=$curcontext state line
  local -a commands=(
{commands}  )
  _arguments -C \
{options}    '1:command:->command' \
    '*::argument:->arguments' && return
  case $state in
    command) _describe command commands ;;
    arguments)
      case $words[1] in
{cases}      esac
      ;;
  esac
}}

if [[ $funcstack[1] == _rollcall ]]; then
  _rollcall "$@"
else
  compdef _rollcall rollcall
fi
)";

// For text inside '...' where _arguments gives meaning to colons and brackets.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += (c == ':' || c == '[' || c == ']' || c == '\\') ? fmt::format("\\{}", c) : std::string(1, c);
    }
  }
  return result;
}

// The action of _arguments for a value: "FILE:_files", "TEXT:(text json)".
std::string zsh_value_of(const Argument& argument) {
  const std::string action = !argument.choices.empty() ? fmt::format("({})", fmt::join(argument.choices, " "))
                             : argument.is_path()      ? "_files"
                                                       : "";
  return fmt::format("{}:{}", escaped(argument.value), action);
}

std::string option_specs(const std::vector<Argument>& options, std::string_view indent) {
  std::string specs;
  for (const Argument& option : options) {
    const bool has_value = !option.value.empty();
    const std::string others = option.repeatable ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    for (const std::string& name : option.names) {
      specs += fmt::format("{}'{}{}{}[{}]{}' \\\n", indent, others, name,
                           has_value && name.starts_with("--") ? "=" : "", escaped(option.help),
                           has_value ? ":" + zsh_value_of(option) : "");
    }
  }
  return specs;
}

std::string zsh_command_case(const CommandHelp& command) {
  constexpr std::string_view indent = "            ";
  std::string text = fmt::format("        {})\n          _arguments \\\n{}", command.name,
                                 option_specs(command.options, indent));
  int number = 1;
  for (const Argument& place : command.places) {
    const std::string where = place.repeatable ? "*" : std::to_string(number++);
    text += fmt::format("{}'{}:{}' \\\n", indent, where, zsh_value_of(place));
  }
  text.resize(text.size() - 3);  // the last line is not continued
  return text + "\n          ;;\n";
}

}  // namespace

std::string zsh_completion(const CommandTree& tree) {
  std::string commands;
  std::string cases;
  for (const CommandHelp& command : tree.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name, escaped(command.summary));
    cases += zsh_command_case(command);
  }
  return fmt::format(zsh_script, fmt::arg("commands", commands), fmt::arg("cases", cases),
                     fmt::arg("options", option_specs(tree.options, "    ")));
}

}  // namespace rollcall::cli
