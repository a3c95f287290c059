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
