#pragma once

// What real ranks leave behind, as values.

#include <optional>
#include <string>
#include <vector>

#include "real/rank/record.h"

namespace rollcall::real {

// How a process that did not come to its own end ended.
struct Death {
  int signal = 0;      // 0: by exit
  int exit_code = 0;   // then
  std::string text{};  // the last words of its standard error; may be empty
};

// What a rank left behind. The records are in the order in which it wrote them.
struct RankLog {
  std::vector<Record> records;
  std::optional<Death> death;
};

struct RunLog {
  std::vector<RankLog> ranks;  // by global rank
  bool timed_out = false;      // the deadline passed, and the supervisor ended what was left
  Time end = 0;
  int refused = 0;  // connections of strangers, in a launched run
};

}  // namespace rollcall::real
