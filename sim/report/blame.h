#pragma once

// Whom a verdict blames.

#include "sim/report/verdict.h"

namespace rollcall {

// True when the culprits are the sides of a tie or of a cycle: nothing says which of them is wrong.
bool is_undecided(const Verdict& verdict);

// Are `ranks` the ones to blame? All of its culprits are, or, where the verdict cannot decide between more, as many
// as `ranks` has of those it lists first. A verdict that blames nobody blames no ranks: the empty set.
bool blames(const Verdict& verdict, const RankSet& ranks);

}  // namespace rollcall
