#include "sim/pipeline/plan.h"

#include <array>

#include <fmt/core.h>

#include "sim/base/ascii.h"
#include "sim/base/error.h"
#include "sim/pipeline/orders.h"

namespace rollcall {
namespace {

struct ScheduleName {
  ScheduleKind kind;
  std::string_view name;
};
constexpr std::array<ScheduleName, 7> schedule_names{{
    {ScheduleKind::gpipe, "GPipe"},
    {ScheduleKind::one_f_one_b, "1F1B"},
    {ScheduleKind::interleaved_1f1b, "Interleaved1F1B"},
    {ScheduleKind::looped_bfs, "LoopedBFS"},
    {ScheduleKind::interleaved_zero_bubble, "InterleavedZeroBubble"},
    {ScheduleKind::zbv_zero_bubble, "ZBVZeroBubble"},
    {ScheduleKind::dual_pipe_v, "DualPipeV"},
}};

constexpr std::array<std::string_view, 11> notations{
    "F", "I", "W", "B", "UNSHARD", "RESHARD", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "REDUCE_GRAD"};
static_assert(notations.size() == static_cast<std::size_t>(Computation::reduce_grad) + 1);

// generate_stage_to_rank_mapping: round robin, or back and forth (torch/distributed/pipelining/_utils.py).
Rank rank_of_stage(const PipelineShape& shape, std::int32_t stage) {
  const Rank place = static_cast<Rank>(stage % shape.ranks);
  const bool goes_back = is_v_shaped(shape.schedule) && stage / shape.ranks % 2 == 1;
  return goes_back ? shape.ranks - 1 - place : place;
}

void check(const PipelineShape& shape) {
  if (shape.ranks < 1 || shape.stages_per_rank < 1 || shape.microbatches < 1) {
    throw ValueError("a pipeline needs at least one rank, one stage on each, and one microbatch");
  }
  if (is_single_stage(shape.schedule) && shape.stages_per_rank != 1) {
    throw ValueError(fmt::format("{} takes one stage per rank, but got {}.", to_string(shape.schedule),
                                 shape.stages_per_rank));
  }
  if (shape.schedule == ScheduleKind::one_f_one_b && shape.microbatches < shape.ranks) {
    throw ValueError(
        fmt::format("Number of microbatches ({}) must be greater than or equal to the number of stages ({}).",
                    shape.microbatches, shape.ranks));
  }
  if (is_v_shaped(shape.schedule) && shape.stages_per_rank != 2) {
    throw ValueError(
        fmt::format("ZBV requires exactly 2 stages per rank, but got {}.", shape.stages_per_rank));
  }
  const std::int32_t stages = shape.stages_per_rank * shape.ranks;
  if (shape.schedule == ScheduleKind::dual_pipe_v && shape.microbatches < stages) {
    throw ValueError(
        fmt::format("DualPipeV requires at least as many microbatches as stages, but got {} microbatches "
                    "and {} stages.",
                    shape.microbatches, stages));
  }
}

// _prepare_schedule_with_comms.
std::vector<RankOrder> orders_of(const PipelinePlan& plan) {
  std::vector<RankOrder> orders;
  for (Rank rank = 0; rank < plan.shape.ranks; ++rank) {
    orders.push_back(detail::add_reduce_grad(detail::add_unshard_reshard(detail::compute_order(plan, rank)),
                                             plan.shape.microbatches));
  }
  orders = detail::add_send_recv(orders, plan);
  return plan.shape.defers_recv ? detail::defer_recv(orders, plan) : orders;
}

}  // namespace

std::string_view to_string(ScheduleKind kind) { return schedule_names[static_cast<std::size_t>(kind)].name; }

std::optional<ScheduleKind> find_schedule(std::string_view name) {
  for (const ScheduleName& row : schedule_names) {
    if (equal_ignoring_case(row.name, name)) {
      return row.kind;
    }
  }
  return std::nullopt;
}

bool is_single_stage(ScheduleKind kind) {
  return kind == ScheduleKind::gpipe || kind == ScheduleKind::one_f_one_b;
}

bool is_v_shaped(ScheduleKind kind) {
  return kind == ScheduleKind::zbv_zero_bubble || kind == ScheduleKind::dual_pipe_v;
}

std::string to_string(const Action& action) {
  const std::string microbatch =
      action.microbatch == Action::no_microbatch ? "" : std::to_string(action.microbatch);
  return fmt::format("{}{}{}", action.stage, notations[static_cast<std::size_t>(action.computation)],
                     microbatch);
}

std::string to_string(const Step& step) {
  return step.overlapped
             ? fmt::format("({};{})OVERLAP_F_B", to_string(step.action), to_string(*step.overlapped))
             : to_string(step.action);
}

PipelinePlan make_pipeline_plan(const PipelineShape& shape) {
  check(shape);
  PipelinePlan plan{.shape = shape, .rank_of_stage = {}, .stages_of_rank = {}, .orders = {}};
  plan.stages_of_rank.resize(static_cast<std::size_t>(shape.ranks));
  for (std::int32_t stage = 0; stage < shape.stages_per_rank * shape.ranks; ++stage) {
    plan.rank_of_stage.push_back(rank_of_stage(shape, stage));
    plan.stages_of_rank[static_cast<std::size_t>(plan.rank_of_stage.back())].push_back(stage);
  }
  if (!is_single_stage(shape.schedule)) {
    plan.orders = orders_of(plan);
  }
  return plan;
}

}  // namespace rollcall
