#pragma once

// The order of computations of each schedule, rank by rank, as in the schedules' _calculate_single_rank_operations,
// without the idle steps in between: those only keep time in torch's diagrams, and _PipelineScheduleRuntime drops them.

#include "sim/pipeline/plan.h"

namespace rollcall::detail {

// The order of one rank, for schedules of several stages per rank.
RankOrder compute_order(const PipelinePlan& plan, Rank rank);

// The steps that torch adds to an order of computations before it runs it: _PipelineScheduleRuntime's
// _prepare_schedule_with_comms, pass by pass (torch/distributed/pipelining/schedules.py).

// _add_unshard_reshard: fetches the parameters of the next three stages ahead, and frees those of others. Costs
// communication only where stages are sharded.
RankOrder add_unshard_reshard(const RankOrder& order);
// _add_reduce_grad: adds a reduction of the gradients after a stage's last backward.
RankOrder add_reduce_grad(const RankOrder& order, std::int32_t microbatches);
// _add_send_recv: adds its send after each computation and, at the same point, its receive on the other rank, so that
// all ranks have their messages in one order, which cannot hang.
std::vector<RankOrder> add_send_recv(const std::vector<RankOrder>& orders, const PipelinePlan& plan);
// _defer_recv_ops: moves receives as late as that order allows.
std::vector<RankOrder> defer_recv(const std::vector<RankOrder>& orders, const PipelinePlan& plan);

}  // namespace rollcall::detail
