#pragma once

// The command line as a value: what completions and the manual page are written from. Read off the very parser
// that reads the arguments, so it cannot say anything else.

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace rollcall::cli {

// An option, or an argument with a place.
struct Argument {
  std::vector<std::string> names;    // "-o", "--output"; of an argument with a place: "FILE"
  std::string value;                 // what stands for the value, "FILE"; empty: a flag
  std::string help;                  // one sentence
  std::vector<std::string> choices;  // the values there are; empty: any
  bool required = false;
  bool repeatable = false;

  // Is the value a file or a directory?
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

// rollcall's own: see parse.cc.
CommandTree command_tree();

// Scripts that complete rollcall's command line. They need no rollcall to run, and bash's needs no package.
std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);
std::string fish_completion(const CommandTree& tree);

// The manual page, for man(1).
std::string manual(const CommandTree& tree);

}  // namespace rollcall::cli
