#pragma once

// Proposals: changes of what ranks call that might let a job finish. Two sources: what the peers of a rank call, and
// the place where the job hangs.

#include <vector>

#include "sim/repair/call_lists.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

struct Proposal {
  CallEdits edits{};          // by rank, then by place
  std::vector<Rank> ranks{};  // that are edited, ascending
  std::size_t kinds = 0;      // of edits: the same change in every step is one
  std::size_t witnesses = 0;  // peers that call so already
};

// By rank, then by place.
void sort_edits(CallEdits& edits);

// What ranks would call if they did as others of their role do.
std::vector<Proposal> as_peers_do(const CallLists& lists);

// What would let the calls go on that the verdict shows.
std::vector<Proposal> where_it_hangs(const CallLists& lists, const Verdict& verdict);

// The places of what `rank` calls with these edits, of which some may be of other ranks.
std::vector<Symbol> places_with(const CallLists& lists, Rank rank, const CallEdits& edits);

}  // namespace rollcall::check
