#pragma once

// Whom a verdict blames.

#include "sim/report/verdict.h"

namespace rollcall {

// True when the culprits are the sides of a tie or of a cycle: nothing says which of them is wrong.
bool is_undecided(const Verdict& verdict);

// How sure it is that its culprits are to blame; that something is wrong is certain. High: they were seen to do it, or
// only their calls have to change. Medium: other ranks' changes would help as well, or nobody looked for changes. Low:
// nothing decides, or no change that was run helps.
enum class Confidence : std::uint8_t { high, medium, low };
Confidence confidence_in_blame(const Verdict& verdict);
std::string_view to_string(Confidence confidence);

// Are `ranks` the ones to blame? All of its culprits are, or, where the verdict cannot decide between more, as many
// as `ranks` has of those it lists first. A verdict that blames nobody blames no ranks: the empty set.
bool blames(const Verdict& verdict, const RankSet& ranks);

}  // namespace rollcall
