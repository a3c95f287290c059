#pragma once

// Reports in files, in addition to what a command prints: --report KIND=FILE, as often as one likes. How each kind is
// written is the business of report_writers.h and of the command.

#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/cli/cli.h"

namespace rollcall::cli {

struct ReportFile {
  std::string kind;
  std::string file;  // empty: standard output, for kinds that are read there
};

// By kind. They write to the stream.
using ReportWriters = std::vector<std::pair<std::string_view, std::function<void(std::ostream&)>>>;

// The kinds of a run of scenarios, and of commands that have no run to report, or more than one.
std::span<const std::string_view> run_kinds();
std::span<const std::string_view> page_kinds();

// What stands behind --report. Throws UsageError, for kinds that are not in the list too. To be asked before
// anything runs.
std::vector<ReportFile> report_files(const CommandLine& line, std::span<const std::string_view> kinds);

// Whether one of the reports draws when things happened.
bool wants_timeline(const std::vector<ReportFile>& files);
// The first file of that kind, or nothing.
std::string file_of(std::string_view kind, const std::vector<ReportFile>& files);

// Writes them, each complete or not at all, and says so on standard error unless `line` is quiet. Throws
// viz::OutputError.
void write_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                   const ReportWriters& writers);

// The same, but a file that cannot be written is told on standard error, and does not keep the others from being
// written; the result is then false.
bool write_all_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                       const ReportWriters& writers);

}  // namespace rollcall::cli
