#include "scenarios/cli/report_files.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>
#include <sstream>

#include <fmt/format.h>

#include "scenarios/format/version.h"
#include "scenarios/json/suggest.h"
#include "sim/base/expects.h"
#include "viz/base/write_file.h"
#include "viz/ci/github.h"
#include "viz/ci/junit.h"
#include "viz/ci/sarif.h"
#include "viz/ci/test_json.h"
#include "viz/html/html_overview.h"
#include "viz/html/html_report.h"
#include "viz/json/json_report.h"

namespace rollcall::cli {

namespace {

constexpr std::array<std::string_view, 5> kinds_of_runs = {"html", "json", "junit", "sarif", "github"};

// GitHub reads annotations from a job's log.
constexpr bool is_for_log(std::string_view kind) { return kind == "github"; }

ReportFile report_file(const std::string& argument, std::span<const std::string_view> kinds) {
  const std::size_t sign = argument.find('=');
  ReportFile report{argument.substr(0, sign), sign == std::string::npos ? "" : argument.substr(sign + 1)};
  if (std::ranges::find(kinds, report.kind) == kinds.end()) {
    const std::string_view nearest = scenario::suggest(report.kind, {kinds.begin(), kinds.end()});
    throw UsageError(fmt::format("--report: unknown report kind '{}'{}; choose one of {}", argument,
                                 nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                                 fmt::join(kinds, ", ")));
  }
  if (report.file.empty() && (sign != std::string::npos || !is_for_log(report.kind))) {
    throw UsageError(fmt::format("--report: '{0}' needs a file; write {0}=FILE", report.kind));
  }
  return report;
}

void write_report(const CommandLine& line, const ReportFile& file, const ReportWriters& writers) {
  const auto writer = std::ranges::find(writers, file.kind, &ReportWriters::value_type::first);
  expects(writer != writers.end(), "a command writes every kind of report that it takes");
  if (file.file.empty()) {
    std::ostringstream text;
    writer->second(text);
    viz::write_stdout(text.str());
    return;
  }
  viz::write_file(file.file, writer->second);
  if (line.detail != viz::TextStyle::Detail::quiet) {
    remark(fmt::format("rollcall: wrote the {} report to {}", file.kind, file.file));
  }
}

// The kinds that are the same for one run and for several.
ReportWriters ci_writers(const viz::TestRun& run) {
  return {{"junit", [&run](std::ostream& out) { viz::junit_report(run, out); }},
          {"sarif", [&run](std::ostream& out) { out << viz::sarif_report(run, std::string(version())); }},
          {"github", [&run](std::ostream& out) { out << viz::github_annotations(run); }}};
}

ReportWriters joined(ReportWriters first, ReportWriters second) {
  first.insert(first.end(), std::make_move_iterator(second.begin()), std::make_move_iterator(second.end()));
  return first;
}

}  // namespace

std::span<const std::string_view> run_kinds() { return kinds_of_runs; }
std::span<const std::string_view> page_kinds() { return run_kinds().first(2); }

std::vector<ReportFile> report_files(const CommandLine& line, std::span<const std::string_view> kinds) {
  std::vector<ReportFile> files;
  for (const std::string& argument : line.reports) {
    files.push_back(report_file(argument, kinds));
  }
  return files;
}

bool wants_timeline(const std::vector<ReportFile>& files) {
  // SARIF has it as its thread flows.
  return std::ranges::any_of(
      files, [](const ReportFile& each) { return each.kind == "html" || each.kind == "sarif"; });
}

std::string file_of(std::string_view kind, const std::vector<ReportFile>& files) {
  const auto found = std::ranges::find(files, kind, &ReportFile::kind);
  return found == files.end() ? "" : found->file;
}

ReportWriters writers_of(const Report& report) {
  return {{"html", [&report](std::ostream& out) { viz::html_report(report, out); }},
          {"json", [&report](std::ostream& out) { out << viz::json_report(report); }}};
}

ReportWriters writers_of(const Report& report, const viz::TestRun& run) {
  return joined(writers_of(report), ci_writers(run));
}

ReportWriters writers_of(const viz::TestRun& run) {
  return joined({{"html", [&run](std::ostream& out) { viz::html_overview(run, out); }},
                 {"json", [&run](std::ostream& out) { out << viz::test_json(run); }}},
                ci_writers(run));
}

void write_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                   const ReportWriters& writers) {
  for (const ReportFile& each : files) {
    write_report(line, each, writers);
  }
}

bool write_all_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                       const ReportWriters& writers) {
  bool wrote_all = true;
  for (const ReportFile& each : files) {
    try {
      write_report(line, each, writers);
    } catch (const viz::OutputError& error) {
      remark(fmt::format("rollcall: error: {}", error.what()));
      wrote_all = false;
    }
  }
  return wrote_all;
}

}  // namespace rollcall::cli
