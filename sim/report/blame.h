#pragma once

// The ranks that a verdict blames.

#include "sim/report/verdict.h"

namespace rollcall {

// True when the culprits are the sides of a tie or of a cycle: nothing says which of them is wrong.
bool is_undecided(const Verdict& verdict);

// True if the culprits follow from calls that do not fit together. They were not seen to fail, so another rank may be
// the one that is wrong.
bool is_inferred_from_calls(const Verdict& verdict);

// How sure a verdict is that its culprits are to blame; it is certain that something is wrong. High: they were seen to
// do it, or only their calls have to change. Medium: changes of other ranks would help as well, or no changes were
// tried. Low: nothing decides between them, or no change that was run helps.
enum class Confidence : std::uint8_t { high, medium, low };
Confidence confidence_in_blame(const Verdict& verdict);
std::string_view to_string(Confidence confidence);

// True if the verdict blames exactly `ranks`: all of its culprits or, if it cannot decide between more of them, as many
// as `ranks` has of those it lists first. A verdict that blames no rank blames the empty set.
bool blames(const Verdict& verdict, const RankSet& ranks);

}  // namespace rollcall
