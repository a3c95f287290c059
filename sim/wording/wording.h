#pragma once

// The sentences of a finding: headline, cause, advice, and what the real backend would show. One place,
// so that every verdict speaks alike. A cause adds to its headline (where, why) and never repeats it.

#include <string>

#include "sim/match/evidence.h"
#include "sim/match/wait_graph.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// Fills headline, cause, advice and on_backend of a finding whose other fields are set.
void word_missing(const Evidence& evidence, const BlockedSlot& slot, Finding& finding);
// Does it say no more than that ranks are missing, so that their calls before may tell more?
bool needs_history(const Finding& finding);
// `ended` made the call so often, and the others wait in a later one of the same line.
void word_uneven_steps(const RankSet& ended, std::size_t made, std::size_t wanted, Finding& finding);
// `ended` never come to the line: "all_reduce at train.py:12" is their last.
void word_last_call(const RankSet& ended, const std::string& call, Finding& finding);
void word_crossing(const Evidence& evidence, const std::vector<BlockedSlot>& slots, const Blame& blame,
                   Finding& finding);
void word_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding);
// The same where only the sizes of parts differ; finding.culprits are set.
void word_parts(const Evidence& evidence, const Incident& incident, Finding& finding);
void word_hook_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding);
void word_mispairing(const Evidence& evidence, const Incident& incident, Finding& finding);
void word_device(const Evidence& evidence, const DeviceIncident& incident, Finding& finding);
void word_failure(const Evidence& evidence, Finding& finding);
void word_limit(const LimitIncident& incident, Finding& finding);

}  // namespace rollcall::check
