#pragma once

// When no majority decides which rank is wrong, the ranks' whole programs often do: what each of them called
// before, and what it would have called next. This module compares them and orders the culprits of a verdict,
// the likeliest first, with the reason. It never adds a culprit to those of a mismatch or a cycle of calls,
// and it says nothing where the programs do not decide. If no program sets a key that ranks wait for, the missing
// key is the mistake.
//
// It needs the calls that each rank would make if every call completed at once. A simulator can find out; for a
// recorded job the calls up to the hang serve (RankProgram::is_whole), and rules that look ahead stay silent.

#include <string>
#include <vector>

#include "sim/match/outlook.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// The ranks whose programs would help; empty if the verdict needs no help.
std::vector<Rank> ranks_to_compare(const Verdict& verdict);

// Makes `first` the likeliest suspects. The others keep their order.
void suspect(const RankSet& first, const std::string& reason, Finding& finding);
// Blames these ranks and nobody else: what made others suspect no longer counts.
void blame_alone(const RankSet& ranks, Finding& finding);

// Orders the culprits. `programs`: those of ranks_to_compare, ascending.
void order_suspects(Verdict& verdict, const std::vector<RankProgram>& programs);

// Blames the one rank of a cycle whose whole program does not contain the collective that the others wait for: it
// leaves the call out, and no order of its calls helps. For jobs that are too large to search for a repair.
void blame_for_left_out_call(Verdict& verdict, const std::vector<RankProgram>& programs);

}  // namespace rollcall::check
