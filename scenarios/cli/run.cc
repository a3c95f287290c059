#include "scenarios/cli/cli.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "scenarios/cli/errors.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/traces.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario.h"
#include "scenarios/test/judge_case.h"
#include "scenarios/test/stopwatch.h"
#include "viz/json_report.h"
#include "viz/text_report.h"
#include "viz/timeline_chart.h"
#include "viz/write_file.h"

namespace rollcall::cli {

namespace {

// Catches the slip `-o scenario.json` before it costs the scenario.
void refuse_to_overwrite(const std::string& file, const std::string& path) {
  std::error_code missing;  // then there is nothing to overwrite
  if (std::filesystem::equivalent(file, path, missing)) {
    throw UsageError(fmt::format("'{}' is the scenario itself; it would be overwritten", path));
  }
}

// The files that a run writes, by the option that names them.
struct OutputFile {
  std::string option;
  std::string path;
};

std::vector<OutputFile> output_files(const CommandLine& line, const std::vector<ReportFile>& reports) {
  std::vector<OutputFile> files = {{"-o", line.output}, {"--trace", line.trace.file}};
  for (const ReportFile& report : reports) {
    files.push_back({"--report", report.file});  // none for a kind that goes to the log
  }
  std::erase_if(files, [](const OutputFile& each) { return each.path.empty(); });
  return files;
}

// The first would be lost under the second.
void refuse_one_file_for_two(const std::vector<OutputFile>& files) {
  namespace fs = std::filesystem;
  const auto place = [](const std::string& path) { return fs::absolute(path).lexically_normal(); };
  for (auto first = files.begin(); first != files.end(); ++first) {
    for (auto second = first + 1; second != files.end(); ++second) {
      std::error_code missing;  // of at least one: then they are the same only by name
      if (place(first->path) == place(second->path) || fs::equivalent(first->path, second->path, missing)) {
        throw UsageError(fmt::format("{} and {} both write '{}'; give them two files", first->option,
                                     second->option, second->path));
      }
    }
  }
}

std::string text_of(const CommandLine& line, const Report& report, const viz::TraceOptions& traced) {
  const bool color = wants_color(line);
  std::string text = viz::text_report(report, {line.detail, color});
  if (line.trace.chart) {
    text += "\n" + viz::timeline_chart(report, traced, {.ascii = line.trace.ascii, .color = color});
  }
  return text;
}

// A scenario that says nothing expects `ok`.
bool is_as_expected(const Report& report) {
  return report.expected.value_or(finding_of(report.verdict) == nullptr);
}

// One scenario as a test run, for reports that know nothing else.
viz::TestRun as_test_run(const CommandLine& line, const scenario::Scenario& scenario, const Report& report) {
  viz::TestRun run;
  run.outcomes.push_back(scenario::outcome_of(scenario, report, {scenario.file, 1, 1}));
  run.selected = 1;
  run.timestamp = scenario::timestamp();
  run.command = line.test.command;
  return run;
}

}  // namespace

ExitCode run_scenario(const CommandLine& line) {
  if (line.trace.chart && line.format == Format::json) {
    throw UsageError("--timeline is text; leave out --format json");
  }
  const std::vector<ReportFile> reports = report_files(line.reports);
  const std::vector<OutputFile> files = output_files(line, reports);
  for (const OutputFile& each : files) {
    refuse_to_overwrite(line.file, each.path);
  }
  refuse_one_file_for_two(files);
  try {
    const scenario::Scenario loaded = scenario::load_scenario(line.file);
    const viz::TraceOptions traced = trace_options(line.trace, loaded.options.world_size);
    check_trace_directory(line.trace, loaded.options.world_size);
    const bool timeline = wants_timeline(line.trace) || wants_timeline(reports);
    const Report report = scenario::run(loaded, {.seed = line.seed, .timeline = timeline});
    emit(line, line.format == Format::json ? viz::json_report(report) : text_of(line, report, traced));
    write_traces(line, report, traced);
    write_reports(line, reports, report, as_test_run(line, loaded, report));
    return is_as_expected(report) ? ExitCode::as_expected : ExitCode::differs;
  } catch (const scenario::InvalidScenario& error) {
    show_diagnostics(line, error);
    return ExitCode::invalid;
  }
}

}  // namespace rollcall::cli
