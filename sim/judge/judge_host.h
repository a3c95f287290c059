#pragma once

// The judge's part about what concerns hosts: groups, the store, and waiting too long. See judge.h.

#include "sim/match/evidence.h"
#include "sim/match/wait_graph.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

Verdict judge_stale_key(const Evidence& evidence);

// Somebody gave up before anything was proven. Nothing when the end of the run says more: everyone finished
// in spite of it, or the ranks that did not come are blocked themselves.
std::optional<Verdict> judge_timeout(const Evidence& evidence);

Verdict judge_leaks(const Evidence& evidence);

// Ranks that wait for a key that nobody sets: all that could have set it wait for it, or are gone.
void blame_for_key(const Evidence& evidence, const BlockedSlot& slot, const RankSet& gone, Finding& finding);
// Of a cycle through the store: the side with fewer ranks, those that wait for keys or those that wait for
// them. On a tie all. The slot to show, as an index.
std::size_t blame_in_cycle(const std::vector<BlockedSlot>& slots, const Blame& blame, Finding& finding);

}  // namespace rollcall::check
