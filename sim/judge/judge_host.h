#pragma once

// The judge's part about hosts: groups, the store, and timeouts. See judge.h.

#include "sim/match/evidence.h"
#include "sim/match/wait_graph.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

Verdict judge_stale_key(const Evidence& evidence);

// For a rank that gave up before anything was proven. Null if the end of the run says more: all ranks finished
// in spite of it, or the ranks that did not arrive are blocked themselves.
std::optional<Verdict> judge_timeout(const Evidence& evidence);

Verdict judge_leaks(const Evidence& evidence);

// For ranks that wait for a key that no rank sets: all ranks that could have set it wait for it, or are gone.
void blame_for_key(const Evidence& evidence, const BlockedSlot& slot, const RankSet& gone, Finding& finding);
// True if all these ranks failed because a key of the store was not set in time.
bool gave_up_in_store(const Evidence& evidence, const RankSet& ranks);
// For culprits that gave up in the store, and ranks that wait for them in `finding.at`: blames the side with fewer
// ranks.
void blame_for_timeout_in_store(Finding& finding);
// In a cycle through the store, blames the side with fewer ranks: those that wait for keys, or the others, which wait
// for those ranks. Blames all of them on a tie. Returns the index of the slot to show.
std::size_t blame_in_cycle(const std::vector<BlockedSlot>& slots, const Blame& blame, Finding& finding);

}  // namespace rollcall::check
