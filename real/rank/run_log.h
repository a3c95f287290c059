#pragma once

// The logs of real ranks, as values.

#include <optional>
#include <string>
#include <vector>

#include "real/rank/record.h"

namespace rollcall::real {

constexpr int unknown_exit = -1;

// How a process died.
struct Death {
  int signal = 0;      // 0: by exit
  int exit_code = 0;   // if `signal` is 0; or unknown_exit: `text` says how it was lost
  std::string text{};  // otherwise the last line of its standard error; may be empty
};

// The log of a rank. The records are in the order in which it wrote them.
struct RankLog {
  std::vector<Record> records;
  std::optional<Death> death;
  bool is_absent = false;  // a launcher was to start it elsewhere, and nothing was heard from it
};

struct RunLog {
  std::vector<RankLog> ranks;  // by global rank
  bool timed_out = false;      // it took too long to connect or to run; the supervisor ended it
  Time end = 0;
  int refused = 0;  // connections from unknown processes, in a launched run
};

}  // namespace rollcall::real
