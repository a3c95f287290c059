#pragma once

// Python's warnings, as far as torch.distributed uses them: equal texts are shown once per process.

#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

// One rank's record of the warnings it has shown.
class WarningFilter {
 public:
  // True the first time for each text.
  bool admits(std::string_view text);

  // warnings.simplefilter("once"), which leaving a Join context sets permanently (join.py, __exit__). The action "once"
  // keeps a record of its own, so every text may show one more time.
  void switch_to_once();

 private:
  std::vector<std::string> shown_;  // a handful of texts
  bool once_ = false;
};

// The current rank's.
WarningFilter& warning_filter();

// Warns the current rank, unless it has seen the text.
void warn(std::string_view text);

}  // namespace rollcall
