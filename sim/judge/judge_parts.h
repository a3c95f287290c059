#pragma once

// The parts of the judge; see judge.h.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "sim/match/evidence.h"
#include "sim/match/wait_graph.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// ---- Calls that met: those that do not match, and those that only seem to (judge_calls.cc) ----

// evidence.mismatch must be set.
Verdict judge_mismatch(const Evidence& evidence);
// evidence.mispairing must be set.
Verdict judge_mispairing(const Evidence& evidence);

// If the run's mispairing came before the failure in slot `seq` of the group, it explains that failure. Sets it as the
// finding's first divergence, and takes its culprits where a majority decides.
void attach_divergence(const Evidence& evidence, GroupId group, std::int64_t seq, Finding& finding);

// ---- Hosts: groups, the store, and timeouts (judge_host.cc) ----

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

// ---- Keys of the store: who should have set them (key_owners.cc) ----

// Of a verdict on ranks that wait for keys of the store, or gave up on them: blames the owners of these keys, if they
// have any, and shows where the keys are waited for. They are the missing ranks of `Finding::at` then.
void blame_key_owners(const Evidence& evidence, Verdict& verdict);

// ---- What ranks observed themselves: failed checks, tensors touched too early, roots outside a group. Also calls that
// no rank waits for (judge_ranks.cc) ----

// The first of these kinds; null if there is none.
const RankObservation* first_observation(const Evidence& evidence,
                                         std::initializer_list<Observation::Kind> kinds);
// The verdict about an observation, with all ranks that made the same mistake.
Verdict judge_observation(const Evidence& evidence, const RankObservation& first);

// For calls that will never complete and that no rank waits for. Returns Completed if there are none.
Verdict judge_open_calls(const Evidence& evidence);

}  // namespace rollcall::check
