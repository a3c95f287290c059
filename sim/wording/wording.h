#pragma once

// The sentences of a finding: headline, cause, advice, and what the real backend would show. They are in one place, so
// that all verdicts use the same language. A cause adds to its headline (where, why) and never repeats it.

#include <string>

#include "sim/match/evidence.h"
#include "sim/match/wait_graph.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// Fills headline, cause, advice and on_backend of a finding whose other fields are set.
void word_missing(const Evidence& evidence, const BlockedSlot& slot, Finding& finding);
// True if it only says that ranks are missing, so that their earlier calls may tell more.
bool needs_history(const Finding& finding);
// `ended` made the call `made` times, and the others wait in number `wanted` of the same line.
void word_uneven_steps(const RankSet& ended, std::size_t made, std::size_t wanted, Finding& finding);
// What to do about it, where the ranks wait in `call`.
std::string advice_for_iterations(const Call& call);
// Names those that wait in a call, where they are to blame for it, and not the others.
void word_extra_headline(Finding& finding);
// These ranks made a call `made` times and went on to another one, while those of `left` are in it once more.
// `others_follow`: these make the other call later.
void word_left_loop(const RankSet& gone, std::size_t made, const Variant& left, bool others_follow,
                    Finding& finding);
// The ranks that ended made this call as often as those that wait in it.
void word_fewer_calls(const RankSet& ended, Finding& finding);
// The ranks that ended make a call `made` times, and those that wait for them, `wanted` times.
void word_uneven_statement(const RankSet& ended, std::size_t made, std::size_t wanted,
                           const std::string& call, Finding& finding);
// `ended` never reach the line; `call` ("all_reduce at train.py:12") is their last.
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
