#pragma once

// The dumps that `diagnose` and `import` are given.

#include <string>
#include <vector>

#include "traces/formats/recordings.h"
#include "viz/base/text_style.h"

namespace rollcall::cli {

struct CommandLine;
enum class ExitCode : int;

// What was wrong with files, a sentence each.
std::vector<std::string> remarks_of(const std::vector<traces::FileProblem>& problems);

// Reads files and folders, shows how far that has come where somebody watches, and says on standard error what
// was not used. Throws UsageError where a folder cannot be listed.
traces::ReadResult read_dumps(const CommandLine& line, const std::vector<std::string>& paths);

// Says that `input` has no ranks, and returns the code to exit with.
ExitCode no_dumps(const traces::ReadResult& input, const std::vector<std::string>& paths);

}  // namespace rollcall::cli
