#pragma once

// The sentences of findings about what ranks detected themselves; see wording.h.

#include "sim/match/evidence.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// `outside`: ranks whose call on a group did nothing, because they do not belong to it.
void word_checks(const std::vector<TensorPlace>& values, const RankSet& outside, Finding& finding);
void word_touches(const std::vector<TensorPlace>& touched, Finding& finding);
// values: what joined ranks updated a parameter of their shard with.
void word_stale_shards(const std::vector<TensorPlace>& values, Finding& finding);
void word_roots(const Evidence& evidence, const Observation& what, Finding& finding);
void word_second_wait(Finding& finding);
void word_dropped_message(bool is_send, Finding& finding);
void word_left_handles(Finding& finding);
void word_open_calls(std::size_t calls, Finding& finding);

}  // namespace rollcall::check
