#include <algorithm>
#include <array>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/shell/command_tree.h"

namespace rollcall::cli {

namespace {

struct CompletedShell {
  std::string_view name;
  std::string (*script)(const CommandTree& tree);
};

constexpr std::array<CompletedShell, 3> shells = {{
    {"bash", bash_completion},
    {"zsh", zsh_completion},
    {"fish", fish_completion},
}};

}  // namespace

// The parser accepts no other shells.
ExitCode print_completion(const CommandLine& line) {
  emit(line, std::ranges::find(shells, line.word, &CompletedShell::name)->script(command_tree()));
  return ExitCode::as_expected;
}

ExitCode print_manual(const CommandLine& line) {
  emit(line, manual(command_tree()));
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
