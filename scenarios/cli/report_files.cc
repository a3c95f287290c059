#include "scenarios/cli/report_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <ostream>
#include <sstream>

#include <fmt/format.h>

#include "scenarios/cli/version.h"
#include "scenarios/json/suggest.h"
#include "viz/github.h"
#include "viz/html_overview.h"
#include "viz/html_report.h"
#include "viz/json_report.h"
#include "viz/junit.h"
#include "viz/sarif.h"
#include "viz/test_json.h"
#include "viz/write_file.h"

namespace rollcall::cli {

struct ReportKind {
  std::string_view name;
  bool shows_timeline;
  bool is_for_log;                                             // needs no file
  void (*write_one)(const Report& report, std::ostream& out);  // of a single run; null: as a test run
  void (*write)(const viz::TestRun& run, std::ostream& out);
};

namespace {

void json_of_one(const Report& report, std::ostream& out) { out << viz::json_report(report); }
void json_of(const viz::TestRun& run, std::ostream& out) { out << viz::test_json(run); }
void sarif_of(const viz::TestRun& run, std::ostream& out) {
  out << viz::sarif_report(run, std::string(version()));
}
void github_of(const viz::TestRun& run, std::ostream& out) { out << viz::github_annotations(run); }

constexpr std::array<ReportKind, 5> kinds = {{
    {"html", true, false, viz::html_report, viz::html_overview},
    {"json", false, false, json_of_one, json_of},
    {"junit", false, false, nullptr, viz::junit_report},
    {"sarif", true, false, nullptr, sarif_of},
    {"github", false, true, nullptr, github_of},
}};

const ReportKind& kind_named(std::string_view name, std::string_view argument) {
  const auto kind = std::ranges::find(kinds, name, &ReportKind::name);
  if (kind != kinds.end()) {
    return *kind;
  }
  std::vector<std::string_view> names;
  std::ranges::transform(kinds, std::back_inserter(names), &ReportKind::name);
  const std::string_view nearest = scenario::suggest(name, names);
  throw UsageError(fmt::format("--report: '{}' is no kind of report{}; there are {}", argument,
                               nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                               fmt::join(names, ", ")));
}

void write_report(const CommandLine& line, const ReportFile& file,
                  const std::function<void(std::ostream&)>& write) {
  if (file.file.empty()) {
    std::ostringstream text;
    write(text);
    viz::write_stdout(text.str());
    return;
  }
  viz::write_file(file.file, write);
  if (line.detail != viz::TextStyle::Detail::quiet) {
    remark(fmt::format("rollcall: wrote the {} report to {}", file.kind->name, file.file));
  }
}

}  // namespace

std::vector<ReportFile> report_files(const std::vector<std::string>& arguments) {
  std::vector<ReportFile> files;
  for (const std::string& argument : arguments) {
    const std::size_t sign = argument.find('=');
    const ReportKind& kind = kind_named(argument.substr(0, sign), argument);
    const std::string file = sign == std::string::npos ? "" : argument.substr(sign + 1);
    if (file.empty() && (sign != std::string::npos || !kind.is_for_log)) {
      throw UsageError(fmt::format("--report: which file? Write {}=FILE", kind.name));
    }
    files.push_back({&kind, file});
  }
  return files;
}

bool wants_timeline(const std::vector<ReportFile>& files) {
  return std::ranges::any_of(files, [](const ReportFile& each) { return each.kind->shows_timeline; });
}

std::string overview_file(const std::vector<ReportFile>& files) {
  const auto found =
      std::ranges::find_if(files, [](const ReportFile& each) { return each.kind->name == "html"; });
  return found == files.end() ? "" : found->file;
}

void write_reports(const CommandLine& line, const std::vector<ReportFile>& files, const Report& report,
                   const viz::TestRun& run) {
  for (const ReportFile& each : files) {
    write_report(line, each, [&](std::ostream& out) {
      each.kind->write_one != nullptr ? each.kind->write_one(report, out) : each.kind->write(run, out);
    });
  }
}

bool write_test_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                        const viz::TestRun& run) {
  bool wrote_all = true;
  for (const ReportFile& each : files) {
    try {
      write_report(line, each, [&](std::ostream& out) { each.kind->write(run, out); });
    } catch (const viz::OutputError& error) {
      remark(fmt::format("rollcall: error: {}", error.what()));
      wrote_all = false;
    }
  }
  return wrote_all;
}

void require_folders(const std::vector<ReportFile>& files) {
  for (const ReportFile& each : files) {
    const std::filesystem::path folder = std::filesystem::path(each.file).parent_path();
    std::error_code ignored;  // then there is none
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
      throw UsageError(fmt::format("--report: there is no folder '{}' for '{}'", folder.string(), each.file));
    }
  }
}

}  // namespace rollcall::cli
