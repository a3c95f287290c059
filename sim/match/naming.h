#pragma once

// From the run's numbers to a report's names.

#include <vector>

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// `op` as a report shows it. Its ranks are inside the group; the call's are global.
Call name_call(const Evidence& evidence, const Op& op, std::int64_t seq);

// The matcher of the call that a rank is blocked in; null for a rank that waits in the store.
const GroupMatcher* matcher_of(const Evidence& evidence, const RankStatus& status);

// The call that a waiting rank is blocked in.
Op waiting_op(const Evidence& evidence, const RankStatus& status);
Call name_waiting_call(const Evidence& evidence, Rank rank);

// The members that a waiting rank waits for, as global ranks: those that have not reached its slot, or the other end of
// its message. A receive from anyone waits for all others, and so does a rank in the store: any other may be meant to
// set the key.
std::vector<Rank> awaited(const Evidence& evidence, const RankStatus& status);

const std::string& group_name(const Evidence& evidence, GroupId group);

// Incident variants (global ranks) as a report shows them, majority first.
std::vector<Variant> name_variants(const Evidence& evidence, const Incident& incident);

// "SUM", "root 2", "SUM, root 2", "tag 7": what distinguishes calls besides operation, dtype and size. The root is a
// global rank.
std::string other_arguments(const GroupMembers& group, const Op& op);

}  // namespace rollcall::check
