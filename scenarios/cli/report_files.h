#pragma once

// Reports in files, beside what a command prints: --report KIND=FILE, as often as one likes.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/cli/cli.h"
#include "sim/report/report.h"

namespace rollcall::cli {

struct ReportKind;

struct ReportFile {
  const ReportKind* kind = nullptr;  // of a fixed table
  std::string file;
};

// What stands behind --report. Throws UsageError. To be asked before anything runs.
std::vector<ReportFile> report_files(const std::vector<std::string>& arguments);

bool wants_timeline(const std::vector<ReportFile>& files);

// Writes them, each complete or not at all, and says so on standard error unless `line` is quiet. Throws
// viz::OutputError.
void write_reports(const CommandLine& line, const std::vector<ReportFile>& files, const Report& report);

}  // namespace rollcall::cli
