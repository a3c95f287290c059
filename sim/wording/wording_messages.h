#pragma once

// The sentences of findings about sends and receives; see wording.h.

#include <cstddef>
#include <cstdint>

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// A send or receive whose other end, or every possible one, has left: `gone`.
void word_unmatched(const Evidence& evidence, const RankSet& gone, Finding& finding);
// The same, where the other end has left after `met` such messages and this one is number `wanted` of its line.
void word_uneven_messages(std::size_t met, std::size_t wanted, Finding& finding);
// A call that torch makes for the schedule of a pipeline (torch/distributed/pipelining), as recorded scripts label it.
bool is_of_schedule(const Call& call);
// Messages of schedules that do not fit together, however they got stuck. The headline is set already.
void word_schedules(Finding& finding);
// Sends (or receives) that wait for each other; headline and chain are set already.
// mixed_batches: the two never meet, because one is in a batch and the other is not. behind_sends: both wait behind
// their own sends to each other.
enum class MessageCycle : std::uint8_t { plain, mixed_batches, behind_sends };
void word_message_cycle(MessageCycle cycle, Finding& finding);
// True if it is such a cycle of receives: the order of the messages is wrong, and no rank or call is.
bool is_behind_sends(const Deadlock& deadlock);
// A send and its receive that disagree in size or dtype.
void word_message_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding);

}  // namespace rollcall::check
