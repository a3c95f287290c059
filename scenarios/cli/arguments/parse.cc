#include "scenarios/cli/cli.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "scenarios/cli/arguments/commands.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/shell/command_tree.h"
#include "scenarios/cli/subject.h"
#include "scenarios/format/cases.h"
#include "scenarios/format/version.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/units.h"
#include "scenarios/run/shell_word.h"
#include "sim/cost/presets.h"
#include "viz/base/text_style.h"
#include "viz/base/write_file.h"
#include "viz/kinds/explanations.h"

namespace rollcall::cli {

namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 as expected, 1 a different verdict than expected (ok is expected\n"
    "where the scenario has no `expect`), 2 interrupted, 3 internal error, 4 wrong\n"
    "usage, an invalid scenario or a file that cannot be written, 5 nothing selected,\n"
    "6 undecided (diagnose), 77 not possible on this machine.";

constexpr const char* about_every_command =
    "`rollcall --help` explains the exit codes, and the options of every command:\n"
    "--format, -o (--output), --color, -q (--quiet), -v (--verbose), --progress.";

// Options as text, until all of them are known to be valid.
struct CommonOptions {
  std::string format = "text";
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
};

void declare_common(CLI::App& app, CommandLine& line, CommonOptions& options) {
  app.add_option("--format", options.format, "Output format: text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("-o,--output", line.output,
                 "Write to this file instead of standard output; of record: the scenario")
      ->type_name("FILE");
  app.add_option("--color", options.color, "When to use color: auto, always or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  CLI::Option* quiet = app.add_flag("-q,--quiet", options.quiet, "Print only the verdict's sentence");
  app.add_flag("--progress", line.progress, "Show progress on standard error, even if it is not a terminal");
  app.add_flag("-v,--verbose", options.verbose, "Print all details")->excludes(quiet);
}

void apply(const CommonOptions& options, CommandLine& line) {
  using Detail = viz::TextStyle::Detail;
  line.format = options.format == "json" ? Format::json : Format::text;
  line.detail = options.quiet ? Detail::quiet : options.verbose ? Detail::verbose : Detail::normal;
  line.color = options.color == "always"  ? viz::ColorChoice::always
               : options.color == "never" ? viz::ColorChoice::never
                                          : viz::ColorChoice::automatic;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view dashes) {
  const std::string_view nearest = scenario::suggest_from(word, candidates);
  return nearest.empty() ? "" : fmt::format(" (did you mean '{}{}'?)", dashes, nearest);
}

// Null if there is none of that name.
const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? nullptr : &*found;
}

[[noreturn]] void unknown_command(std::string_view word) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.emplace_back(command.name);
  }
  if (word.find_first_of("./") != std::string_view::npos) {
    throw UsageError(fmt::format("'{}' is not a command, and there is no such file", word));
  }
  throw UsageError(fmt::format("unknown command '{}'{}; `rollcall --help` lists all", word,
                               did_you_mean(word, names, "")));
}

// " (did you mean '--seed'?)". Single letters are too short for suggestions.
std::string nearest_option(std::string_view word, const CLI::App& place) {
  if (!word.starts_with("--")) {
    return {};
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : place.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  return did_you_mean(word.substr(2, word.find('=') - 2), names, "--");
}

// Explains the first argument that `app` did not recognize.
[[noreturn]] void unexpected_argument(const CLI::App& app) {
  const std::string word = app.remaining(true).front();
  const bool has_command = !app.get_subcommands().empty();
  const CLI::App& place = has_command ? *app.get_subcommands().front() : app;
  const std::string where = has_command ? fmt::format(" for '{}'", place.get_name()) : "";
  if (!word.starts_with("-")) {
    has_command ? throw UsageError(fmt::format("unexpected argument '{}'{}", word, where))
                : unknown_command(word);
  }
  throw UsageError(fmt::format("unknown option '{}'{}{}", word, where, nearest_option(word, place)));
}

// CLI11 only counts ("--seed: 1 required N missing"); users want to know what to do.
std::string values_differ(const CLI::ArgumentMismatch& error) {
  const std::string text = error.what();
  const std::string option = text.substr(0, text.find(':'));
  return text.ends_with("missing") ? option + " needs a value" : option + " is given more than once";
}

std::string version_text() {
  const std::string_view commit_id = commit();
  return fmt::format("rollcall {}{}\n{}", version(), commit_id.empty() ? "" : fmt::format(" ({})", commit_id),
                     libraries());
}

// A heading that is never shown: its options are explained elsewhere.
constexpr const char* of_every_command = "of every command";

// CLI11's own help leaves long lines to the terminal, which breaks them inside words.
class Help : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return in_column(option->get_description());
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    return group == of_every_command
               ? ""
               : Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(), in_column(command->get_description()),
                             get_column_width());
    return out.str();
  }

 private:
  static constexpr std::size_t width = 80;
  std::string in_column(const std::string& text) const {
    return fmt::format("{}", fmt::join(viz::wrap(text, width - get_column_width()), "\n"));
  }
};

// The part of --help about the options that every command has.
std::string common_options_text() {
  CLI::App app;
  CommandLine line;
  CommonOptions options;
  app.set_help_flag();
  declare_common(app, line, options);
  for (CLI::Option* option : app.get_options()) {
    option->group("Options of every command");
  }
  const std::string text = Help().make_groups(&app, CLI::AppFormatMode::Normal);
  return text.substr(text.find_first_not_of('\n'));
}

std::string examples_text(const Command& command) {
  std::string text = "Examples:\n";
  for (const char* example : command.examples) {
    text += fmt::format("  rollcall {}\n", example);
  }
  return text;
}

// "html=FILE" for each kind that the command has; what goes to standard output has no file.
std::vector<std::string> forms_of_reports(const Command& command, std::string_view file) {
  std::vector<std::string> forms;
  for (const std::string_view kind : command.reports()) {
    forms.push_back(kind == "github" ? std::string(kind) : fmt::format("{}={}", kind, file));
  }
  return forms;
}

void declare_reports(CLI::App& app, CommandLine& line, const Command& command) {
  const std::vector<std::string> forms = forms_of_reports(command, "FILE");
  app.add_option("--report", line.reports,
                 fmt::format("Also write a report: {}; repeatable", fmt::join(forms, ", ")))
      ->type_name("KIND=FILE")
      ->allow_extra_args(false);
}

// Builds the parser, which writes to its arguments.
void build(CLI::App& app, CommandLine& line, CommonOptions& common) {
  app.formatter(std::make_shared<Help>());
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  for (const Command& command : commands()) {
    CLI::App& subcommand = *app.add_subcommand(command.name, command.summary);
    subcommand.group(command.purpose);
    subcommand.callback([&line, &command] { line.execute = command.execute; });
    command.declare(subcommand, line);
    if (command.reports != nullptr) {
      declare_reports(subcommand, line, command);
    }
    if (command.passes_words_on) {
      subcommand.prefix_command();
      subcommand.parse_complete_callback([&subcommand, &line] {
        const std::vector<std::string> words = subcommand.remaining();
        line.paths.insert(line.paths.begin(), words.begin(), words.end());
      });
    }
    for (CLI::Option* option : subcommand.get_options()) {
      if (option->get_positional() && option->get_type_name().starts_with("TEXT")) {
        option->type_name("");  // its name says enough
      }
    }
    const std::size_t own = subcommand.get_options().size();
    declare_common(subcommand, line, common);
    const std::vector<CLI::Option*> all = subcommand.get_options();
    for (std::size_t i = own; i < all.size(); ++i) {
      all[i]->group(of_every_command);  // the program's help explains them, once
    }
    const std::string note = subcommand.get_footer();
    subcommand.footer(examples_text(command) + (note.empty() ? "" : "\n" + note + "\n") + "\n" +
                      about_every_command);
  }
  app.footer(common_options_text() + "\n" + exit_codes);  // last: commands would inherit it
}

constexpr const char* program_summary =
    "Finds the rank that hangs a torch.distributed job: in a simulation, from what a\n"
    "hung job left, or while it hangs.\n\n"
    "`rollcall PATH` looks at what PATH is (a training script, a scenario, dumps and\n"
    "logs of a job, a trace, a report, a directory of these) and runs the command\n"
    "that is for it.\n";

// Handles --help and --version: CLI11 knows their text.
ExitCode say(const CLI::App& app, const CLI::Success& request) {
  std::ostringstream out;
  app.exit(request, out, out);
  viz::write_stdout(out.str());
  return ExitCode::as_expected;
}

// Adds what the parser itself does not know.
void complete(CommandTree& tree) {
  for (CommandHelp& help : tree.commands) {
    const Command& command = *find_command(help.name);
    for (const char* example : command.examples) {
      help.examples.push_back(fmt::format("rollcall {}", example));
    }
    if (help.name == "explain") {  // which has a better message for a wrong word than the parser
      std::ranges::transform(viz::explanations(), std::back_inserter(help.places.front().choices),
                             &viz::Explanation::word);
    }
    for (Argument& option : help.options) {
      if (option.names.front() == "--cluster") {
        option.choices = cost::preset_names();
      } else if (option.names.front() == "--report") {
        option.choices = forms_of_reports(command, "");
      }
    }
  }
}

// The number of arguments that are ours: some commands pass on the words after a lone "--".
int own_arguments(int argc, const char* const* argv) {
  const Command* const command = find_command(argc > 1 ? argv[1] : "");
  const bool passes_on = command != nullptr && command->passes_words_on;
  const auto* const end = argv + argc;
  const auto* const dashes = passes_on ? std::find(argv, end, std::string_view("--")) : end;
  return static_cast<int>(dashes - argv);
}

// True for "host:port", which is not a path.
bool is_address(std::string_view word) {
  const std::size_t colon = word.rfind(':');
  return colon != word.npos && colon > 0 && colon + 1 < word.size() &&
         word.find_first_not_of("0123456789", colon + 1) == word.npos && word.find('/') == word.npos;
}

// For `rollcall PATH ...`, returns the command for that path, with the rest of the words. Empty if the first word is a
// command, an option, or a mistake.
std::vector<std::string> obvious_command(std::span<const char* const> words) {
  if (words.empty() || find_command(words.front()) != nullptr) {
    return {};
  }
  const std::string word = words.front();
  std::error_code missing;
  const bool is_path = word == "-" || std::filesystem::exists(scenario::parse_address(word).file, missing);
  if (word.empty() || (word.starts_with("-") && word != "-") || (!is_path && !is_address(word))) {
    return {};
  }
  std::vector<std::string> line = {"attach", word};
  std::string noun = "the address of a job";
  if (is_path) {
    const Subject subject = subject_of(word);
    line = command_for(subject, word);
    noun = noun_of(subject);
    if (line.empty()) {
      throw UsageError(
          fmt::format("'{}' is {}{}", word, noun, subject == Subject::page ? "; open it in a browser" : ""));
    }
  }
  line.insert(line.end(), words.begin() + 1, words.end());
  std::string typed = "rollcall";
  for (const std::string& each : line) {
    typed += " " + scenario::shell_word(each);
  }
  remark(fmt::format("rollcall: {} is {}: {}", word, noun, typed));
  return line;
}

std::variant<CommandLine, ExitCode> parse_command(int argc, const char* const* argv) {
  CommandLine line;
  CommonOptions common;
  CLI::App app(program_summary, "rollcall");
  build(app, line, common);
  const int own = own_arguments(argc, argv);
  line.paths.assign(argv + std::min(argc, own + 1), argv + argc);
  try {
    app.parse(own, argv);
  } catch (const CLI::Success& request) {
    return say(app, request);
  } catch (const CLI::ExtrasError&) {
    unexpected_argument(app);
  } catch (const CLI::ArgumentMismatch& error) {
    throw UsageError(values_differ(error));
  } catch (const CLI::ParseError& error) {
    if (!app.get_subcommands().empty()) {
      throw UsageError(error.what());
    }
    if (!app.remaining().empty()) {
      unexpected_argument(app);
    }
    throw UsageError(
        "no command given; `rollcall --help` lists them, and `rollcall run FILE` runs a scenario");
  }
  apply(common, line);
  for (int i = 0; i < argc; ++i) {
    line.test.command += (i == 0 ? "rollcall" : " " + scenario::shell_word(argv[i]));
  }
  return line;
}

}  // namespace

std::int64_t at_least(std::int64_t least, const scenario::Quantity& read, const std::string& option,
                      std::string_view complaint) {
  if (!read.value || *read.value < least) {
    throw UsageError(fmt::format("{}: {}", option, read.value ? complaint : read.problem));
  }
  return *read.value;
}

CommandTree command_tree() {
  CommandLine line;
  CommonOptions common;
  CLI::App app(program_summary, "rollcall");
  build(app, line, common);
  CommandTree tree = describe(app, exit_codes);
  complete(tree);
  return tree;
}

std::variant<CommandLine, ExitCode> parse(int argc, const char* const* argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  const std::vector<std::string> obvious =
      obvious_command(words.subspan(std::min<std::size_t>(1, words.size())));
  if (obvious.empty()) {
    return parse_command(argc, argv);
  }
  std::vector<const char*> line = {"rollcall"};
  std::ranges::transform(obvious, std::back_inserter(line), &std::string::c_str);
  return parse_command(static_cast<int>(line.size()), line.data());
}

}  // namespace rollcall::cli
