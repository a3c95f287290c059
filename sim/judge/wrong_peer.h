#pragma once

// Messages that never meet because their ends name different ranks, tags or groups. A send without a recv and a recv
// without a send that share one rank are one mistake: with another peer in one call both would match. This is decided
// from the programs of all ranks; if any rank receives from any source, it cannot be decided.

#include <vector>

#include "sim/judge/suspects.h"

namespace rollcall::check {

// True if messages are stuck, so that find_wrong_peer could help.
bool has_stuck_messages(const Verdict& verdict);

// Blames the ranks whose calls name the wrong peer, if that explains the verdict's messages.
// `programs`: of all ranks, and whole; otherwise the verdict stays.
void find_wrong_peer(Verdict& verdict, const std::vector<RankProgram>& programs);

}  // namespace rollcall::check
