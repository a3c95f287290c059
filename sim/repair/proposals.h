#pragma once

// Proposals: changes to the calls of ranks that might let a job finish. They have two sources: the calls of a rank's
// peers, and the place where the job hangs.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/repair/call_lists.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

struct Proposal {
  CallEdits edits{};          // by rank, then by place
  std::vector<Rank> ranks{};  // that are edited, ascending
  std::size_t kinds = 0;      // of edits: the same change in every step is one
  std::size_t witnesses = 0;  // peers that make these calls already
};

// Sorts by rank, then by place.
inline void sort_edits(CallEdits& edits) {
  std::ranges::stable_sort(edits, {}, [](const CallEdit& edit) { return std::pair(edit.rank, edit.at); });
}

// Proposals that let ranks make the calls that others of their role make.
std::vector<Proposal> as_peers_do(const CallLists& lists);

// Calls of some ranks: their indexes in the ranks' lists.
using CallsAt = std::map<Rank, std::size_t>;

// A call that some ranks wait in, and others do not make.
struct HangPlace {
  CallsAt at{};
  RankSet missing{};
};

// Where a job hangs, or its calls disagree.
struct Hang {
  std::vector<HangPlace> places{};
  std::vector<CallsAt> variants{};   // of one call that its ranks made differently
  bool is_of_one_statement = false;  // the variants differ in their arguments alone

  bool is_empty() const { return places.empty() && variants.empty(); }
};

Hang hang_of(const CallLists& lists, const Verdict& verdict);

// True if a rank's call number `at` is a collective that others make with other arguments, and nobody makes it like
// this elsewhere. If the rank made theirs before it, it would be in it still, and nobody would come.
bool is_theirs_otherwise(const CallLists& lists, Rank rank, std::size_t at, Rank other, std::size_t theirs);

// Proposals that let these calls continue.
std::vector<Proposal> where_it_hangs(const CallLists& lists, const Hang& hang);

}  // namespace rollcall::check
