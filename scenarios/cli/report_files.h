#pragma once

// Reports in files, in addition to the command's output: --report KIND=FILE, any number of times.

#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/cli/cli.h"
#include "sim/report/report.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::cli {

struct ReportFile {
  std::string kind;
  std::string file;  // empty: standard output, for kinds that go there
};

// The writers by kind. They write to the stream.
using ReportWriters = std::vector<std::pair<std::string_view, std::function<void(std::ostream&)>>>;

// Writers of every kind, which borrow their arguments. For one run: page_kinds().
ReportWriters writers_of(const Report& report);
// For one run, which is also given as the test run `run`: run_kinds().
ReportWriters writers_of(const Report& report, const viz::TestRun& run);
// For several runs: run_kinds().
ReportWriters writers_of(const viz::TestRun& run);

// The kinds for runs of scenarios, and for commands that have no run to report, or more than one.
std::span<const std::string_view> run_kinds();
std::span<const std::string_view> page_kinds();

// Returns the files of --report. Throws UsageError, also for kinds that are not in the list. Call it before
// anything runs.
std::vector<ReportFile> report_files(const CommandLine& line, std::span<const std::string_view> kinds);

// True if one of the reports draws a timeline.
bool wants_timeline(const std::vector<ReportFile>& files);
// The first file of that kind, or an empty string.
std::string file_of(std::string_view kind, const std::vector<ReportFile>& files);

// Writes them, each complete or not at all, and says so on standard error unless `line` is quiet. Throws
// viz::OutputError.
void write_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                   const ReportWriters& writers);

// The same, but an error in one file is reported on standard error, and the others are still
// written; the result is then false.
bool write_all_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                       const ReportWriters& writers);

}  // namespace rollcall::cli
