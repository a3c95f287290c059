#pragma once

// Checks the files that a command is about to write before anything runs, so that no file overwrites another.

#include <string>
#include <vector>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/report_files.h"

namespace rollcall::cli {

// Throws UsageError if a file of -o, --trace, --record, or --report is one of `inputs`, or the same as
// another of them.
void require_files_of_their_own(const CommandLine& line, const std::vector<ReportFile>& reports,
                                const std::vector<std::string>& inputs);

// Throws UsageError if the folder of such a file does not exist: after an hour of tests, that would be too late.
void require_folders(const CommandLine& line, const std::vector<ReportFile>& reports);

}  // namespace rollcall::cli
