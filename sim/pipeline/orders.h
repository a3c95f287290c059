#pragma once

// The order of computations of each schedule, rank by rank, as in the schedules' _calculate_single_rank_operations,
// without the idle steps in between: those only keep time in torch's diagrams, and _PipelineScheduleRuntime drops them.

#include "sim/pipeline/plan.h"

namespace rollcall::detail {

// The order of one rank, for schedules of several stages per rank.
RankOrder compute_order(const PipelinePlan& plan, Rank rank);

}  // namespace rollcall::detail
