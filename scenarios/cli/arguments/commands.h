#pragma once

// Every command with its options: one table, from which the parser, --help, completion, and the manual are made.

#include <array>
#include <span>
#include <string_view>

#include "scenarios/cli/cli.h"

namespace CLI {
class App;
}

namespace rollcall::cli {

struct Command {
  const char* name;
  const char* summary;
  void (*declare)(CLI::App& app, CommandLine& line);  // declares the options, which fill `line`
  ExitCode (*execute)(const CommandLine& line);
  const char* purpose;                                       // the heading in --help
  std::array<const char*, 2> examples;                       // without "rollcall"
  std::span<const std::string_view> (*reports)() = nullptr;  // the kinds of --report; null: it has none
  bool passes_words_on = false;  // the words that are not its own are another program's command line
};

// In the order of --help.
std::span<const Command> commands();

}  // namespace rollcall::cli
