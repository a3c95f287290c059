#pragma once

// Reports in files, beside what a command prints: --report KIND=FILE, as often as one likes.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/cli/cli.h"
#include "sim/report/report.h"
#include "viz/test_outcome.h"

namespace rollcall::cli {

struct ReportKind;

struct ReportFile {
  const ReportKind* kind = nullptr;  // of a fixed table
  std::string file;                  // empty: standard output, for kinds that are read there
};

// What stands behind --report. Throws UsageError. To be asked before anything runs.
std::vector<ReportFile> report_files(const std::vector<std::string>& arguments);

bool wants_timeline(const std::vector<ReportFile>& files);
// Of a test run: the file of the HTML overview, or nothing. Pages of scenarios lie in a folder beside it.
std::string overview_file(const std::vector<ReportFile>& files);

// Writes them, each complete or not at all, and says so on standard error unless `line` is quiet. `run` is the same
// report as a test run. Throws viz::OutputError.
void write_reports(const CommandLine& line, const std::vector<ReportFile>& files, const Report& report,
                   const viz::TestRun& run);

// The same for a run of several scenarios. A file that cannot be written is an error of its own, and does not
// keep the others from being written; the result is then false.
bool write_test_reports(const CommandLine& line, const std::vector<ReportFile>& files,
                        const viz::TestRun& run);

// Throws UsageError for files whose folder does not exist: after an hour of tests that would be too late.
void require_folders(const std::vector<ReportFile>& files);

}  // namespace rollcall::cli
