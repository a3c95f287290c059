#pragma once

// Observation: what a rank finds out about its own calls and data while it runs. Whether something is raised
// for it as well is the program's and torch's affair; the judge hears of it.

#include <string>
#include <utility>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

struct Observation {
  enum class Kind : std::uint8_t {
    check_failed,   // a tensor does not hold what the program expects
    touched_early,  // a tensor was used before the asynchronous call that works on it was waited for
    stood_outside,  // a call on a group its rank does not belong to: nothing happened
    foreign_root,   // a root that does not belong to the group: torch raises
    // A joined rank updates a parameter (`tensor`) with a gradient that the active ranks have replaced: `got`
    // says what it has instead. `handle` is the optimizer.
    stale_gradient,
    // The first joinable of Join's list (`handle`) notifies from its own main_hook, as only active ranks may.
    hook_notifies,
  };
  enum class Access : std::uint8_t { read, write, free };

  Kind kind = Kind::check_failed;
  Access access = Access::read;  // touched_early
  std::string tensor{};          // the name the program has for it
  std::string got{};             // check_failed: values, as text
  std::string want{};
  double surplus = 0;  // check_failed: how much larger the value is than expected
  // check_failed: what each rank put into the reduction that made the value, as far as known.
  std::vector<std::pair<Rank, double>> contributions{};
  std::string handle{};   // touched_early: what the unfinished call is called; may be empty
  Op op{};                // the call it is about, without tensors; none for check_failed
  std::int64_t seq = -1;  // its number, where it has one
  Rank root = -1;         // foreign_root: as it was named, a global rank
  Site site{};            // of the statement
};

}  // namespace rollcall
