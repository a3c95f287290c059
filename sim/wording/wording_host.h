#pragma once

// The sentences of findings about groups, the store and time limits; see wording.h.

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

void word_stale_key(const Evidence& evidence, const StoreIncident& incident, Finding& finding);
void word_late(const Evidence& evidence, const TimeoutIncident& incident, Finding& finding);
void word_leaks(const Evidence& evidence, Finding& finding);
void word_never_served(Finding& finding);
void word_deleted_key(const std::string& key, Finding& finding);
// Headline and chain are set already. `place`: where ranks wait in a call about groups.
void word_group_cycle(const Evidence& evidence, const Place& place, Finding& finding);
// The same, through the store. Replaces the headline.
void word_store_cycle(const RankSet& everyone, Finding& finding);

// Ranks wait in their group's first call, a batch_isend_irecv, for members that have ended without one.
void word_no_communicator(const Evidence& evidence, const Place& place, const RankSet& missing,
                          Finding& finding);

// The rule that every rank has to follow in a call that makes, splits or destroys groups.
const char* group_call_advice(const Evidence& evidence, const std::string& op);
// What a rank sees while it waits for others in such a call, or in a call on the store.
std::string host_hang_on_backend(const Evidence& evidence, const std::string& op);
std::string store_hang_on_backend();
std::string communicator_hang_on_backend();  // where its members make it with their first calls
// For ranks whose wait for a key has timed out, while the ranks in `finding.at` wait for them.
void word_timeout_in_store(const RankSet& gave_up, Finding& finding);
// Culprits that did not set the keys with their own numbers, while others did. `waiting`: for these keys, still or in
// vain. Replaces headline, cause and advice.
void word_key_owners(const Evidence& evidence, const std::vector<std::string>& keys, const RankSet& waiting,
                     Finding& finding);
bool is_host_call(const std::string& op);

}  // namespace rollcall::check
