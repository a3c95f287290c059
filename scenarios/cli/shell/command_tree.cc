#include "scenarios/cli/shell/command_tree.h"

#include <utility>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace rollcall::cli {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.emplace_back(text);
  return parts;
}

// CLI11 describes a value by its type and its checks: "TEXT:{text,json}", "INT:POSITIVE". A type may contain a colon:
// "A:B".
void describe_value(const CLI::Option& option, Argument& argument) {
  argument.value = option.get_type_name();
  for (const std::string_view check : {":POSITIVE", ":NONNEGATIVE"}) {
    if (argument.value.ends_with(check)) {
      argument.value.resize(argument.value.size() - check.size());
    }
  }
  const std::size_t list = argument.value.find(":{");
  if (list != std::string::npos && argument.value.back() == '}') {
    argument.choices =
        split(std::string_view(argument.value).substr(list + 2, argument.value.size() - list - 3), ',');
    argument.value.resize(list);
  }
}

Argument describe_option(const CLI::Option& option) {
  Argument argument;
  for (const std::string& name : option.get_snames()) {
    argument.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    argument.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) {
    describe_value(option, argument);
  }
  argument.help = option.get_description();
  argument.required = option.get_required();
  argument.repeatable = option.get_expected_max() > 1;
  return argument;
}

Argument describe_place(const CLI::Option& option) {
  Argument argument = describe_option(option);
  argument.value = option.get_name();
  argument.names = {argument.value};
  return argument;
}

CommandHelp describe_command(const CLI::App& app) {
  CommandHelp command{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.places.push_back(describe_place(*option));
    } else {
      command.options.push_back(describe_option(*option));
    }
  }
  return command;
}

}  // namespace

bool Argument::is_path() const {
  return value == "FILE" || value == "DIR" || value == "PATH" || value.ends_with("=FILE");
}

CommandTree describe(const CLI::App& app, std::string exit_codes) {
  CommandTree tree{app.get_description(), std::move(exit_codes), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    tree.options.push_back(describe_option(*option));
  }
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* command : app.get_subcommands(all)) {
    tree.commands.push_back(describe_command(*command));
  }
  return tree;
}

}  // namespace rollcall::cli
