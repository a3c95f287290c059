#pragma once

// PipelinePlan: which rank of a pipeline does what, in which order, as the schedules of
// torch.distributed.pipelining (2.14) lay it out (torch/distributed/pipelining/schedules.py). A plan is pure data,
// the same for every rank, and is made once for all of them; sim/pipeline/schedule.h runs it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// The names of get_schedule_class: "GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble",
// "ZBVZeroBubble", "DualPipeV".
enum class ScheduleKind : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved_1f1b,
  looped_bfs,
  interleaved_zero_bubble,
  zbv_zero_bubble,
  dual_pipe_v,
};

std::string_view to_string(ScheduleKind kind);
// Ignores case, like get_schedule_class. Empty for an unknown name.
std::optional<ScheduleKind> find_schedule(std::string_view name);
// True for schedules of one stage per rank. They have no order of actions: their loops are in schedule.cc.
bool is_single_stage(ScheduleKind kind);
// True if the stages of a rank form a V: neighbors meet on the last rank and on the first.
bool is_v_shaped(ScheduleKind kind);

// _ComputationType.
enum class Computation : std::uint8_t {
  forward,          // F
  backward_input,   // I
  backward_weight,  // W
  full_backward,    // B
  unshard,
  reshard,
  send_f,
  recv_f,
  send_b,
  recv_b,
  reduce_grad,
};

struct Action {
  static constexpr std::int32_t no_microbatch = -1;

  std::int32_t stage = 0;
  Computation computation = Computation::forward;
  std::int32_t microbatch = no_microbatch;

  friend auto operator<=>(const Action&, const Action&) = default;
};

// "2F0", "1UNSHARD", "3SEND_F1": torch's own notation.
std::string to_string(const Action& action);

// One entry of a rank's order: an action, or an overlapped forward and backward (OVERLAP_F_B), which run one after the
// other unless the user has registered a function of their own.
struct Step {
  Action action;
  std::optional<Action> overlapped{};
};

std::string to_string(const Step& step);

using RankOrder = std::vector<Step>;

struct PipelineShape {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  Rank ranks = 1;                    // of the pipeline's group
  std::int32_t stages_per_rank = 1;  // len(stages)
  std::int32_t microbatches = 1;
  bool defers_recv = false;  // defer_pp_recv
};

struct PipelinePlan {
  PipelineShape shape;
  std::vector<Rank> rank_of_stage;                        // inside the group
  std::vector<std::vector<std::int32_t>> stages_of_rank;  // ascending
  std::vector<RankOrder> orders;  // by rank, with communication; empty for schedules of one stage per rank

  std::int32_t stages() const { return static_cast<std::int32_t>(rank_of_stage.size()); }
};

// Throws ValueError, in torch's words, for numbers of stages and microbatches that the schedule does not support.
PipelinePlan make_pipeline_plan(const PipelineShape& shape);

}  // namespace rollcall
