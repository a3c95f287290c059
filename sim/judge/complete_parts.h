#pragma once

// What check::complete adds to a verdict, a file each.

#include <optional>
#include <vector>

#include "sim/match/outlook.h"
#include "sim/report/sample_use.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// ---- endings.cc ----
//
// Explains why ranks ended without a call that others wait for: they ran fewer iterations of the same loop, or took
// another branch.

// True if the verdict says only that the other side of a call is missing, and not why.
bool has_unexplained_endings(const Verdict& verdict);
void explain_endings(const Outlook& outlook, Verdict& verdict);

// ---- hook_diff.cc ----
//
// Compares the calls of a main_hook with the calls of the iteration that it should shadow. The judge knows only the one
// pair of calls that met; the calls around them are known only from the programs.

// Adds to a join_hook_mismatch the collectives of one iteration and of its shadow, and names the broken rule if the
// joinable is one of torch's. Leaves other verdicts alone.
void add_hook_diff(const Outlook& outlook, Verdict& verdict);

// ---- judge_samples.cc ----
//
// Samplers that do not partition a dataset. Nothing hangs then, and nothing is raised.

// Returns a finding if ranks shuffle with different seeds and so see each other's samples; null otherwise. The samples
// that a sampler repeats to give every rank the same number are not a mistake.
std::optional<Verdict> judge_samples(const SampleUse& use);

// ---- wrong_peer.cc ----
//
// Messages that never meet because their ends name different ranks, tags or groups. A send without a recv and a recv
// without a send that share one rank are one mistake: with another peer in one call both would match. This is decided
// from the programs of all ranks; if any rank receives from any source, it cannot be decided.

// True if messages are stuck, so that find_wrong_peer could help.
bool has_stuck_messages(const Verdict& verdict);

// Blames the ranks whose calls name the wrong peer, if that explains the verdict's messages.
// `programs`: of all ranks, and whole; otherwise the verdict stays.
void find_wrong_peer(Verdict& verdict, const std::vector<RankProgram>& programs);

}  // namespace rollcall::check
