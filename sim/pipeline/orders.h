#pragma once

// The order of computations of each schedule, rank by rank, as the schedules' _calculate_single_rank_operations
// have it, without the idle steps in between: those keep time only in torch's drawings, and
// _PipelineScheduleRuntime drops them.

#include "sim/pipeline/plan.h"

namespace rollcall::detail {

// Of one rank. For schedules of several stages per rank. `microbatches_per_round` is the interleaved schedules'.
RankOrder compute_order(const PipelinePlan& plan, Rank rank);

// _PipelineScheduleRuntime rounds: how many microbatches of a stage come in a row in the interleaved schedules.
// ValueError when the rounds do not come out even.
std::int32_t microbatches_per_round(const PipelineShape& shape);

}  // namespace rollcall::detail
