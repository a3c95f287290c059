#pragma once

// When no majority decides who is wrong, the ranks' whole programs often do: what each of them has called
// before, and what it would have called next. This module compares them and orders the culprits of a verdict,
// the likeliest first, with the reason. It never adds a culprit to those of a mismatch or a cycle of calls,
// and it says nothing where the programs say nothing. Where no program sets a key that ranks wait for, the key
// is what is wrong.
//
// Needed: what each rank would call if every call completed at once. A simulator can find out; for a recorded
// job the calls up to the hang serve, and rules that look ahead stay silent.

#include <string>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// One call of a rank's program, in the terms of a report.
struct ProgramCall {
  OpKind kind = OpKind::barrier;
  std::string group{};
  std::int64_t seq = 0;  // on that group, messages apart
  std::int64_t numel = 0;
  std::string dtype{};
  std::string label{};
  bool is_root = false;  // the rank itself is the call's src or dst
  Rank peer = -1;        // messages: the other end, global; -1: anyone
  std::int32_t tag = 0;  // messages, where tags count
};

// What one rank calls, in order.
struct RankProgram {
  Rank rank = 0;
  std::vector<ProgramCall> calls;
  std::vector<std::string> sets{};  // the keys of the store that it sets, in any order
};

// The ranks whose programs would help; empty when the verdict needs no help.
std::vector<Rank> ranks_to_compare(const Verdict& verdict);

// Orders the culprits. `programs`: those of ranks_to_compare, ascending.
void order_suspects(Verdict& verdict, const std::vector<RankProgram>& programs);

}  // namespace rollcall::check
