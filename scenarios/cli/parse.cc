#include "scenarios/cli/cli.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/core.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "scenarios/cli/commands.h"
#include "scenarios/cli/shell/command_tree.h"
#include "scenarios/format/version.h"
#include "scenarios/json/suggest.h"
#include "scenarios/run/shell_word.h"
#include "viz/base/write_file.h"

namespace rollcall::cli {

namespace {

constexpr const char* footer =
    "Exit codes: 0 as expected, 1 a different verdict than expected (ok is expected where the\n"
    "scenario has no `expect`), 2 interrupted, 3 internal error, 4 wrong usage, an invalid\n"
    "scenario or a file that cannot be written, 5 nothing selected, 77 not possible on this\n"
    "machine.";

// Options as text, until all of them are known to be right.
struct CommonOptions {
  std::string format = "text";
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
};

void declare_common(CLI::App& app, CommandLine& line, CommonOptions& options) {
  app.add_option("--format", options.format, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("-o,--output", line.output, "Write to this file instead of standard output")
      ->type_name("FILE");
  app.add_option("--color", options.color, "When to use color: auto, always or never")
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

[[noreturn]] void unknown_command(std::string_view word) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.emplace_back(command.name);
  }
  if (word.find_first_of("./") != std::string_view::npos) {
    throw UsageError(
        fmt::format("unknown command '{0}'; `rollcall run {0}` runs a scenario, `rollcall record -n 4 {0}` "
                    "records a Python script, `rollcall diagnose {0}` reads a job's dumps",
                    word));
  }
  throw UsageError(fmt::format("unknown command '{}'{}", word, did_you_mean(word, names, "")));
}

// " (did you mean '--seed'?)". Single letters are too short to be nearly right.
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

// Explains the first argument that `app` did not know what to do with.
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

// CLI11 counts ("--seed: 1 required N missing"); people want to know what to do.
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

// The parser, which writes to what it is given.
void build(CLI::App& app, CommandLine& line, CommonOptions& common) {
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(footer);
  for (const Command& command : commands()) {
    CLI::App& subcommand = *app.add_subcommand(command.name, command.summary);
    subcommand.callback([&line, &command] { line.execute = command.execute; });
    command.declare(subcommand, line);
    declare_common(subcommand, line, common);
  }
}

constexpr const char* program_summary =
    "Simulates the ranks of a torch.distributed program and finds the one that causes a hang.";

// --help and --version arrive here: CLI11 knows their text.
ExitCode say(const CLI::App& app, const CLI::Success& request) {
  std::ostringstream out;
  app.exit(request, out, out);
  viz::write_stdout(out.str());
  return ExitCode::as_expected;
}

}  // namespace

CommandTree command_tree() {
  CommandLine line;
  CommonOptions common;
  CLI::App app(program_summary, "rollcall");
  build(app, line, common);
  return describe(app);
}

namespace {

// How many of the arguments are ours: in `record` and `watch`, what comes after a lone "--" is somebody else's command
// line.
int own_arguments(int argc, const char* const* argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const bool passes_on = command == "record" || command == "watch";
  const auto* const end = argv + argc;
  const auto* const dashes = passes_on ? std::find(argv, end, std::string_view("--")) : end;
  return static_cast<int>(dashes - argv);
}

}  // namespace

std::variant<CommandLine, ExitCode> parse(int argc, const char* const* argv) {
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

}  // namespace rollcall::cli
