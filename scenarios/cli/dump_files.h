#pragma once

// Reads the dumps that are given to `diagnose` and `import`.

#include <string>
#include <vector>

#include "traces/formats/recordings.h"

namespace rollcall::cli {

struct CommandLine;
enum class ExitCode : int;

// The problems of files, one sentence each.
std::vector<std::string> remarks_of(const std::vector<traces::FileProblem>& problems);

// Reads files and folders, shows progress on a terminal, and says on standard error which files
// were not used. Throws UsageError if a folder cannot be listed.
traces::ReadResult read_dumps(const CommandLine& line, const std::vector<std::string>& paths);

// Says that `input` has no ranks, and returns the exit code.
ExitCode no_dumps(const traces::ReadResult& input, const std::vector<std::string>& paths);

}  // namespace rollcall::cli
