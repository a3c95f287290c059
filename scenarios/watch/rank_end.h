#pragma once

// How the ranks of a watched job ended, and what `watch` writes about it into watch.log, which the judge of dumps reads
// (traces/logs/watch_log.h).

#include <optional>
#include <string>
#include <vector>

#include "sim/report/rank_set.h"

namespace rollcall::watch {

struct RankEnd {
  enum class Error {
    none,       // its program raised nothing
    own,        // it raised an error of its own
    of_others,  // it had lost a peer, or had waited too long for one
  };

  Rank rank = 0;
  std::string phrase;              // "killed by SIGKILL"
  std::optional<int> wait_status;  // waitpid's; none: its parent has taken it
  bool is_good = false;
  Error error = Error::none;
};

// The ranks that have ended so far, in this order, while others run. A rank that raised is left out: its error says
// more.
std::string lines_of_ended(const std::vector<RankEnd>& ends);

// Which rank made the job fail: one line, empty if no rank can be told. `ends`: in the order in which they ended;
// `ranks`: how many there were.
std::string line_of_failure(const std::vector<RankEnd>& ends, std::size_t ranks);

}  // namespace rollcall::watch
