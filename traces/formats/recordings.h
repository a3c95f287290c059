#pragma once

// What the ranks of a real job left behind, as one job: files and folders in, values for the judge out.
// formats.cc has the table of what is understood.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// A file that was not used, or not as the user may think.
struct FileProblem {
  std::string file;
  std::string message;  // with the byte offset where there is one

  friend bool operator==(const FileProblem&, const FileProblem&) = default;
};

struct ReadResult {
  check::JobDump job;
  std::vector<FileProblem> problems;  // by file
  std::vector<std::string> unknown;  // files in folders that nobody here can read
};

// Called by any of the reading threads when a file is through: how many are, of how many.
using ReadProgress = std::function<void(std::size_t done, std::size_t all)>;

// Files and folders (searched for recordings, other files are passed over) as one job. Reads on all cores;
// the result does not depend on their number nor on the order of `paths`. A file that cannot be read is
// a problem, not an error: the other ranks are still worth reading. Throws std::filesystem errors only
// for folders that cannot be listed.
ReadResult read_recordings(const std::vector<std::string>& paths, const ReadProgress& progress = {});

}  // namespace rollcall::traces
