#pragma once

// What a command is about to write, checked before anything runs: nothing may be lost under something else.

#include <string>
#include <vector>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/report_files.h"

namespace rollcall::cli {

// Throws UsageError when a file of -o, --trace, --record or --report is one of `inputs`, or another of them.
void require_files_of_their_own(const CommandLine& line, const std::vector<ReportFile>& reports,
                                const std::vector<std::string>& inputs);

// Throws UsageError for reports whose folder does not exist: after an hour of tests that would be too late.
void require_folders(const std::vector<ReportFile>& reports);

}  // namespace rollcall::cli
