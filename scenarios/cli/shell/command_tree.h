#pragma once

// The command line as a value, from which completions and the manual page are written. It is read from the parser that
// reads the arguments, so it cannot differ from it.

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace rollcall::cli {

// An option, or a positional argument.
struct Argument {
  std::vector<std::string> names;    // "-o", "--output"; "FILE" for a positional argument
  std::string value;                 // the placeholder of the value, "FILE"; empty for a flag
  std::string help;                  // one sentence
  std::vector<std::string> choices;  // the allowed values; empty: any
  bool required = false;
  bool repeatable = false;

  // True if the value is a file or a directory.
  bool is_path() const;
};

struct CommandHelp {
  std::string name;
  std::string summary;
  std::vector<Argument> places;  // in order
  std::vector<Argument> options;
  std::vector<std::string> examples{};  // whole command lines
};

struct CommandTree {
  std::string summary;
  std::string exit_codes;  // one sentence
  std::vector<Argument> options;
  std::vector<CommandHelp> commands;
};

CommandTree describe(const CLI::App& app, std::string exit_codes);

// The tree of rollcall itself: see parse.cc.
CommandTree command_tree();

// Scripts that complete rollcall's command line. They do not run rollcall, and bash's needs no package.
std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);
std::string fish_completion(const CommandTree& tree);

// The manual page, for man(1).
std::string manual(const CommandTree& tree);

}  // namespace rollcall::cli
