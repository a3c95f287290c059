#pragma once

// The folders that torchrun keeps logs in: RUN/attempt_K/LOCAL_RANK/stderr.log, by DefaultLogsSpecs in
// torch/distributed/elastic/multiprocessing/api.py. A local rank is the rank only where one node ran once: each node
// has a RUN of its own, and each restart a folder "attempt_K".

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/rank_set.h"

namespace rollcall::traces {

struct LauncherFolder {
  std::string run;      // the path of what holds the attempts
  int attempt = 0;      // 0 as well where there are no such folders
  Rank local_rank = 0;  // the name of the folder that the file is in

  friend bool operator==(const LauncherFolder&, const LauncherFolder&) = default;
};

// Empty for files that are not torchrun's, and for those in no folder with a number.
std::optional<LauncherFolder> launcher_folder(std::string_view path);

// What is known of the ranks of a job's files from all of their paths together.
class LauncherFolders {
 public:
  explicit LauncherFolders(const std::vector<std::string>& paths);

  // True if another attempt of this file's run followed.
  bool is_of_earlier_attempt(std::string_view path) const;
  // The folders of these attempts, each once.
  const std::vector<std::string>& earlier_attempts() const { return earlier_; }
  // True if a local rank says which rank it is.
  bool local_ranks_are_ranks() const { return !runs_overlap_; }

 private:
  std::map<std::string, int, std::less<>> last_;  // attempt of each run
  std::vector<std::string> earlier_;
  bool runs_overlap_ = false;  // some have the same local rank in their last attempts
};

}  // namespace rollcall::traces
