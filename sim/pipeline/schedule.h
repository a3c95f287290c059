#pragma once

// PipelineSchedule: torch.distributed.pipelining's schedules, call for call (torch/distributed/pipelining/
// schedules.py, 2.14). The model computes nothing here: the rank program says what a stage's forward and backward
// do, and the schedule sends and receives around them.
//
//   const PipelinePlan plan = make_pipeline_plan(
//       {.schedule = ScheduleKind::interleaved_1f1b, .ranks = 4, .stages_per_rank = 2, .microbatches = 8});
//   PipelineSchedule schedule(plan, {.group = pp, .tensors = {{.shape = {1, 4096, 8192}}}},
//                             {.forward = [&](StagePass pass) { compute(5 * millisecond); }});
//   schedule.step();

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/pipeline/plan.h"
#include "sim/pipeline/stage.h"

namespace rollcall {

struct PipelineOptions {
  ProcessGroup group{};                             // none: the world
  std::vector<StageTensor> tensors{StageTensor{}};  // that cross every border between two stages
  // True if PipelineStage was given input_args and output_args. Otherwise the first step sends their shapes from stage
  // to stage, as pickled objects (_forward_metadata_inference, _backward_metadata_inference).
  bool has_shapes = true;
};

// One computation of one stage.
struct StagePass {
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  Computation computation = Computation::forward;  // F, B, I or W
  bool is_last_backward = false;  // of the stage in this step: DDP reduces then, and only then
};

// What the stages of a rank do; each may issue calls of its own. An empty one does nothing.
struct StageFunctions {
  std::function<void(const StagePass& pass)> forward{};
  std::function<void(const StagePass& pass)> backward{};  // B, I and W
  // For sharded stages: FSDPModule.unshard, reshard, and the reduction after the last backward.
  std::function<void(std::int32_t stage)> unshard{};
  std::function<void(std::int32_t stage)> reshard{};
  std::function<void(std::int32_t stage)> reduce_grad{};
};

class PipelineSchedule {
 public:
  // plan: borrowed. Throws ValueError when the group has another number of ranks than the plan.
  PipelineSchedule(const PipelinePlan& plan, PipelineOptions options, StageFunctions functions);
  PipelineSchedule(const PipelineSchedule&) = delete;
  PipelineSchedule& operator=(const PipelineSchedule&) = delete;

  // One training iteration. Blocks. The first one determines whether shapes are known, with a vote that goes through
  // all stages and back.
  void step(Site site = Site::here()) { run(true, site); }
  // Forward only. After a step it votes again, and so does the next step.
  void eval(Site site = Site::here()) { run(false, site); }

 private:
  using Received =
      std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Work>>;  // by stage, microbatch

  void run(bool has_backward, Site site);
  void initialize(bool has_backward, Site site);
  template <typename Exchange>
  void pass_along(bool comes_back, Exchange&& exchange) const;
  void vote(Site site);
  void infer_shapes(bool has_backward, Site site);

  void run_gpipe(Site site);
  void run_1f1b(Site site);
  void run_order(Site site);

  void perform(const Action& action, Site site);

  PipelineStage& stage(std::int32_t index);
  bool is_own(std::int32_t stage_index) const;
  void forward(std::int32_t stage_index, std::int32_t microbatch);
  void backward(std::int32_t stage_index, std::int32_t microbatch, Computation computation);
  void reduce_grad(std::int32_t stage_index);

  const PipelinePlan& plan_;
  PipelineOptions options_;
  ProcessGroup group_;
  StageFunctions functions_;
  std::vector<PipelineStage> stages_;  // this rank's, ascending
  bool is_forward_ready_ = false;      // which directions are initialized
  bool is_backward_ready_ = false;
  Received received_activations_;  // being received
  Received received_gradients_;
  std::vector<std::vector<Work>> sends_;
  std::map<std::int32_t, std::int32_t>
      backwards_;  // of this step, by stage: those that count toward the last one
};

}  // namespace rollcall
