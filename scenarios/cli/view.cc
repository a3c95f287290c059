#include "scenarios/cli/cli.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenarios/cli/errors.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "scenarios/report_reader.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario.h"
#include "viz/html_report.h"
#include "viz/write_file.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

// A report as it was, or what becomes of a scenario now.
Report report_of(const std::string& path) {
  const scenario::SourceText source = scenario::read_source(path);
  if (std::optional<Report> report = scenario::read_report(source)) {
    return *std::move(report);
  }
  const scenario::Scenario loaded = scenario::parse_scenario(std::string(source.text()), path);
  return scenario::run(loaded, {.seed = {}, .timeline = true});
}

// In a folder of its own, so that no other user of the machine can have put a link there.
std::string temporary_page(const std::string& path) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "rollcall-XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    throw viz::OutputError(fmt::format("cannot make a temporary folder: {}",
                                       error ? error.message() : std::generic_category().message(errno)));
  }
  return (fs::path(folder) / fs::path(path).filename().replace_extension(".html")).string();
}

void open_in_browser(std::string page) {
  std::string program = "xdg-open";
  char* arguments[] = {program.data(), page.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ);
  int status = 0;
  if (error != 0 || ::waitpid(child, &status, 0) < 0 || status != 0) {
    const std::string why = error != 0 ? ": " + std::generic_category().message(error) : "";
    throw UsageError(fmt::format("xdg-open cannot open the page{}; it is at {}", why, page));
  }
}

}  // namespace

ExitCode view_report(const CommandLine& line) {
  if (line.file.ends_with(".html")) {
    throw UsageError(fmt::format("'{}' is a page already; open it in a browser", line.file));
  }
  try {
    const Report report = report_of(line.file);
    const std::string page = line.output.empty() ? temporary_page(line.file) : line.output;
    viz::write_file(page, [&report](std::ostream& out) { viz::html_report(report, out); });
    viz::write_stdout(page + "\n");
    if (line.open) {
      open_in_browser(page);
    }
    return ExitCode::as_expected;
  } catch (const scenario::InvalidScenario& error) {
    show_diagnostics(line, error);
    return ExitCode::invalid;
  }
}

}  // namespace rollcall::cli
