#pragma once

// A question asked in a process of its own: the answer may be a crash, or none at all, and what it takes (CUDA does
// not survive a fork) must not stay in this process.

#include <functional>
#include <string>

#include "sim/base/time.h"

namespace rollcall::real {

struct ChildAnswer {
  std::string text;
  bool is_late = false;  // it did not come within the limit, and the process was killed
  int status = 0;        // of the process, as waitpid has it
};

// `question` runs in a child, which ends without destructors. Waits for at most `limit` of real time for each part
// of the answer; 0: for good. Throws std::system_error.
ChildAnswer ask_child(const std::function<std::string()>& question, Duration limit = 0);

}  // namespace rollcall::real
