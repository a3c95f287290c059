#include <algorithm>

#include <fmt/format.h>

#include "scenarios/cli/shell/command_tree.h"
#include "scenarios/format/version.h"

namespace rollcall::cli {
namespace {

// Escapes text for troff: a backslash, a hyphen that has to stay one, a line that begins like
// a request.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool starts_line = result.empty() || result.back() == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += starts_line && (c == '.' || c == '\'') ? fmt::format("\\&{}", c) : std::string(1, c);
    }
  }
  return result;
}

std::string choices_of(const Argument& argument) {
  return argument.choices.empty()
             ? ""
             : fmt::format("\n({})", roff(fmt::format("{}", fmt::join(argument.choices, ", "))));
}

// "-o, --output FILE" and what it does.
std::string option_entry(const Argument& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  if (!option.value.empty()) {
    names += fmt::format(" \\fI{}\\fR", roff(option.value));
  }
  return fmt::format(".TP\n{}\n{}{}\n", names, roff(option.help), choices_of(option));
}

std::string place_entry(const Argument& place) {
  // The words of `explain` are too many to list here; the command lists them.
  return fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(place.value), roff(place.help));
}

// "rollcall run [OPTION]... FILE".
std::string synopsis(const CommandHelp& command) {
  std::string text = fmt::format("\\fBrollcall {}\\fR [\\fIOPTION\\fR]...", command.name);
  for (const Argument& place : command.places) {
    const std::string word = fmt::format("\\fI{}\\fR{}", roff(place.value), place.repeatable ? "..." : "");
    text += place.required ? " " + word : fmt::format(" [{}]", word);
  }
  return text;
}

bool is_everywhere(const Argument& option, const CommandTree& tree) {
  return std::ranges::all_of(tree.commands, [&](const CommandHelp& command) {
    return std::ranges::any_of(command.options, [&](const Argument& own) {
      return own.names == option.names && own.help == option.help;
    });
  });
}

std::string command_section(const CommandHelp& command, const CommandTree& tree) {
  std::string text =
      fmt::format(".SS {}\n{}\n.PP\n{}.\n", command.name, synopsis(command), roff(command.summary));
  for (const Argument& place : command.places) {
    text += place_entry(place);
  }
  for (const Argument& option : command.options) {
    text += is_everywhere(option, tree) ? "" : option_entry(option);
  }
  text += ".PP\n.nf\n";
  for (const std::string& example : command.examples) {
    text += roff(example) + "\n";
  }
  return text + ".fi\n";
}

std::string common_options(const CommandTree& tree) {
  std::string text = ".SH OPTIONS OF EVERY COMMAND\n";
  for (const Argument& option : tree.commands.front().options) {
    text += is_everywhere(option, tree) ? option_entry(option) : "";
  }
  return text;
}

constexpr const char* environment = R"(.SH ENVIRONMENT
.TP
\fBNO_COLOR\fR, \fBCLICOLOR_FORCE\fR, \fBTERM\fR
Decide whether to use color where \fB\-\-color\fR is not given.
)";

}  // namespace

std::string manual(const CommandTree& tree) {
  std::string text = fmt::format(".TH ROLLCALL 1 \"\" \"rollcall {}\" \"User Commands\"\n", roff(version()));
  text += ".SH NAME\nrollcall \\- find the rank that is missing from a distributed program\n.SH SYNOPSIS\n";
  text += "\\fBrollcall\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n";
  text += fmt::format(".SH DESCRIPTION\n{}\n", roff(tree.summary));
  for (const Argument& option : tree.options) {
    text += option_entry(option);
  }
  text += ".SH COMMANDS\n";
  for (const CommandHelp& command : tree.commands) {
    text += command_section(command, tree);
  }
  text += common_options(tree);
  text += fmt::format(".SH EXIT STATUS\n{}\n", roff(tree.exit_codes));
  return text + environment;
}

}  // namespace rollcall::cli
