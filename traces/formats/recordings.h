#pragma once

// Reads the recordings that the ranks of a real job left behind as one job: takes files and folders, returns values
// for the judge. formats.cc has the table of supported formats.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// A file that was not used, or not in the way that the user may expect.
struct FileProblem {
  std::string file;
  std::string message;  // with the byte offset if there is one

  friend bool operator==(const FileProblem&, const FileProblem&) = default;
};

struct ReadResult {
  check::JobDump job;
  std::vector<FileProblem> problems;  // by file
  std::vector<std::string> unknown;   // files in folders that no reader knows
};

// Called by any of the reading threads when a file is done: how many files are done, out of how many.
using ReadProgress = std::function<void(std::size_t done, std::size_t all)>;

// Reads files and folders (searched for recordings; other files are skipped) as one job. Reads on all cores;
// the result depends neither on their number nor on the order of `paths`. A file that cannot be read is
// a problem, not an error: the other ranks are still worth reading. Throws std::filesystem errors only
// for folders that cannot be listed.
ReadResult read_recordings(const std::vector<std::string>& paths, const ReadProgress& progress = {});

}  // namespace rollcall::traces
