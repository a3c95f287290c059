#pragma once

namespace rollcall::cli {

// The command line's options for progress.
struct ProgressWish {
  bool is_quiet = false;   // -q: not even on a terminal
  bool is_wanted = false;  // --progress: also without a terminal
};

}  // namespace rollcall::cli
