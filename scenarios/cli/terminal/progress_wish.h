#pragma once

namespace rollcall::cli {

// What the command line says about progress.
struct ProgressWish {
  bool is_quiet = false;   // -q: not even on a terminal
  bool is_wanted = false;  // --progress: also where nobody watches a terminal
};

}  // namespace rollcall::cli
