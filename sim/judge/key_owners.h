#pragma once

// Who should have set a key that ranks wait for. Programs often let each rank set a key with its own number
// ("ready0", "ready1"), and wait for all of them: a barrier made by hand. If others have set theirs, the rank whose
// number is in the missing key is to blame, wherever it waits itself.

#include <string>

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// The rank whose number is in `key`, where other ranks have set the key with theirs, and no rank one with another's
// number. Empty if no rank is, if several are, or if what was set is as likely to be a count from 0.
std::optional<Rank> owner_of(const Evidence& evidence, const std::string& key);

// Of a verdict on ranks that wait for keys of the store, or gave up on them: blames the owners of these keys, if they
// have any, and shows where the keys are waited for. They are the missing ranks of `Finding::at` then.
void blame_key_owners(const Evidence& evidence, Verdict& verdict);

}  // namespace rollcall::check
