#pragma once

// Finds out what happened between two members of a group whose calls met without belonging together.
//
// Calls with equal numbers pair, whatever they are. So a missing or extra call shows later, in the first
// pair that disagrees in operation, shape or dtype; where stacks are recorded, the pairs before it
// already come from different lines.

#include "sim/diagnose/dump_waits.h"

namespace rollcall::check {

struct Shift {
  enum class Kind : std::uint8_t {
    none,      // one odd call between equal ones
    skipped,   // the member left calls out
    extra,     // it made calls of its own
    repeated,  // it made the previous calls again
    unclear,   // calls left out, extra or repeated, and no stacks to tell which
  };

  Kind kind = Kind::none;
  std::int64_t position = 0;  // where it began
  std::int64_t count = 0;     // of calls
  Kind rival = Kind::none;    // another kind that fits as well
  bool is_older = false;      // it began earlier than what is recorded: `position` is that of the oldest call
};

// Compares `odd` with `usual`, which diverge at `position`: the last one that both have, or should have.
Shift find_shift(const DumpView& view, const GroupMember& odd, const GroupMember& usual,
                 std::int64_t position);

// The frame of the user's code that a call came from: the innermost one outside installed packages. Null
// if none is recorded.
const DumpFrame* user_frame(const JobDump& job, const DumpRecord& record);

// True if Join's hooks made the call for a rank that ran out of inputs (torch/distributed/algorithms/
// join.py, and the _match_ functions of nn/parallel/distributed.py).
bool is_join_shadow(const JobDump& job, const DumpRecord& record);

}  // namespace rollcall::check
