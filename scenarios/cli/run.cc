#include "scenarios/cli/cli.h"

#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/format.h>

#include "scenarios/cli/errors.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario.h"
#include "viz/chrome_trace.h"
#include "viz/json_report.h"
#include "viz/text_report.h"
#include "viz/write_file.h"

namespace rollcall::cli {

namespace {

// Catches the slip `-o scenario.json` before it costs the scenario.
void refuse_to_overwrite(const std::string& file, const std::string& path) {
  std::error_code missing;  // then there is nothing to overwrite
  if (!path.empty() && std::filesystem::equivalent(file, path, missing)) {
    throw UsageError(fmt::format("'{}' is the scenario itself; it would be overwritten", path));
  }
}

// The report would be lost under the trace.
void refuse_one_file_for_two(const CommandLine& line) {
  namespace fs = std::filesystem;
  const auto place = [](const std::string& path) { return fs::absolute(path).lexically_normal(); };
  std::error_code missing;  // of at least one: then they are the same only by name
  if (!line.output.empty() && !line.trace.empty() &&
      (place(line.output) == place(line.trace) || fs::equivalent(line.output, line.trace, missing))) {
    throw UsageError(fmt::format("-o and --trace both write '{}'; give them two files", line.trace));
  }
}

void write_trace(const CommandLine& line, const Report& report) {
  viz::write_file(line.trace, [&report](std::ostream& out) { viz::chrome_trace(report, out); });
  if (line.detail != viz::TextStyle::Detail::quiet) {
    remark(fmt::format("rollcall: wrote {} spans to {}; open it at https://ui.perfetto.dev",
                       report.timeline.spans().size(), line.trace));
  }
}

// A scenario that says nothing expects `ok`.
bool is_as_expected(const Report& report) {
  return report.expected.value_or(finding_of(report.verdict) == nullptr);
}

}  // namespace

ExitCode run_scenario(const CommandLine& line) {
  refuse_to_overwrite(line.file, line.output);
  refuse_to_overwrite(line.file, line.trace);
  refuse_one_file_for_two(line);
  try {
    const scenario::Scenario loaded = scenario::load_scenario(line.file);
    const Report report = scenario::run(loaded, {.seed = line.seed, .timeline = !line.trace.empty()});
    emit(line, line.format == Format::json ? viz::json_report(report)
                                           : viz::text_report(report, {line.detail, wants_color(line)}));
    if (!line.trace.empty()) {
      write_trace(line, report);
    }
    return is_as_expected(report) ? ExitCode::as_expected : ExitCode::differs;
  } catch (const scenario::InvalidScenario& error) {
    show_diagnostics(line, error);
    return ExitCode::invalid;
  }
}

}  // namespace rollcall::cli
