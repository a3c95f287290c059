#pragma once

// Messages that never meet because one end names another rank, tag or group than the other. A send that nobody
// receives and a recv that nobody sends, both of one rank's, are one mistake: with another peer in one call both would
// be well. Told from the programs of all ranks; where one receives from anyone, nothing can be told.

#include <vector>

#include "sim/judge/suspects.h"

namespace rollcall::check {

// True when messages are stuck, so that find_wrong_peer could help.
bool has_stuck_messages(const Verdict& verdict);

// Names whose call has the wrong peer, if the verdict's messages are among those that it explains.
// `programs`: of all ranks, and whole; otherwise nothing is said.
void find_wrong_peer(Verdict& verdict, const std::vector<RankProgram>& programs);

}  // namespace rollcall::check
