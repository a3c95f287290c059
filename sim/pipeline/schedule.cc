#include "sim/pipeline/schedule.h"

#include <algorithm>
#include <ranges>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"

namespace rollcall {
namespace {

// A pickled _StageForwardMeta or _StageBackwardMeta of one tensor, as torch 2.14 makes it. It affects only the size of
// two messages per stage in the first step.
constexpr std::int64_t metadata_bytes = 161;

// send_object_list and recv_object_list of one object, with use_batch: its size, then its bytes.
void send_object(std::int64_t bytes, Rank to, const ProcessGroup& group, Site site) {
  const Tensor size = Tensor::full({1}, static_cast<double>(bytes), Dtype::int64, this_rank().device);
  const Tensor object = Tensor::zeros({bytes}, Dtype::uint8, this_rank().device);
  for (const Tensor& tensor : {size, object}) {
    const PointToPoint message{
        .kind = OpKind::send, .tensor = tensor, .peer = to, .options = {.group = group}};
    wait_batch_p2p(batch_isend_irecv(std::span(&message, 1), site));
  }
}

void receive_object(Rank from, const ProcessGroup& group, Site site) {
  const auto receive = [&](const Tensor& tensor) {
    const PointToPoint message{
        .kind = OpKind::recv, .tensor = tensor, .peer = from, .options = {.group = group}};
    wait_batch_p2p(batch_isend_irecv(std::span(&message, 1), site));
  };
  const Tensor size = Tensor::zeros({1}, Dtype::int64, this_rank().device);
  receive(size);
  receive(Tensor::zeros({size.item_integer()}, Dtype::uint8, this_rank().device));
}

std::vector<PointToPoint> joined(std::vector<PointToPoint> first, const std::vector<PointToPoint>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

PipelineSchedule::PipelineSchedule(const PipelinePlan& plan, PipelineOptions options,
                                   StageFunctions functions)
    : plan_(plan),
      options_(std::move(options)),
      group_(options_.group ? options_.group : world()),
      functions_(std::move(functions)) {
  if (!group_.is_member()) {
    throw ValueError("a rank outside the pipeline's group has no stage of it");
  }
  if (group_.size() != plan.shape.ranks) {
    throw ValueError(fmt::format("the schedule is for {} ranks, but the pipeline's group has {}",
                                 plan.shape.ranks, group_.size()));
  }
  for (const std::int32_t index : plan.stages_of_rank[static_cast<std::size_t>(group_.rank())]) {
    stages_.emplace_back(plan_, index, group_, options_.tensors);
  }
}

bool PipelineSchedule::is_own(std::int32_t stage_index) const {
  return std::ranges::any_of(stages_, [&](const PipelineStage& own) { return own.index() == stage_index; });
}

PipelineStage& PipelineSchedule::stage(std::int32_t index) {
  const auto found = std::ranges::find(stages_, index, &PipelineStage::index);
  expects(found != stages_.end(), "a rank runs its own stages");
  return *found;
}

void PipelineSchedule::run(bool has_backward, Site site) {
  for (PipelineStage& own : stages_) {
    own.has_backward = has_backward;
  }
  initialize(has_backward, site);
  backwards_.clear();
  switch (plan_.shape.schedule) {
    case ScheduleKind::gpipe:
      return run_gpipe(site);
    case ScheduleKind::one_f_one_b:
      return run_1f1b(site);
    default:
      return run_order(site);
  }
}

// _initialize_pp_stages: initializes both directions again when training and evaluation alternate.
void PipelineSchedule::initialize(bool has_backward, Site site) {
  if (is_forward_ready_ && has_backward != is_backward_ready_) {
    is_forward_ready_ = false;
    is_backward_ready_ = false;
  }
  if (is_forward_ready_) {
    return;
  }
  const Scope scope("pipeline.warmup");
  vote(site);
  if (!options_.has_shapes) {
    infer_shapes(has_backward, site);
  }
  is_forward_ready_ = true;
  is_backward_ready_ = has_backward;
}

// _warmup_forward_vote, _warmup_backward_result: a product goes down all stages, and comes back up.
void PipelineSchedule::vote(Site site) {
  const Tensor vote = Tensor::full({1}, options_.has_shapes ? 1 : 0, Dtype::int32, this_rank().device);
  for (const PipelineStage& own : stages_) {
    if (const auto from = own.previous_rank()) {
      recv(vote, *from, {.group = group_}, site);
    }
    if (const auto to = own.next_rank()) {
      send(vote, *to, {.group = group_}, site);
    }
  }
  for (const PipelineStage& own : std::views::reverse(stages_)) {
    if (const auto from = own.next_rank()) {
      recv(vote, *from, {.group = group_}, site);
    }
    if (const auto to = own.previous_rank()) {
      send(vote, *to, {.group = group_}, site);
    }
  }
}

void PipelineSchedule::infer_shapes(bool has_backward, Site site) {
  for (const PipelineStage& own : stages_) {
    if (const auto from = own.previous_rank()) {
      receive_object(*from, group_, site);
    }
    if (const auto to = own.next_rank()) {
      send_object(metadata_bytes, *to, group_, site);
    }
  }
  for (const PipelineStage& own : std::views::reverse(stages_)) {
    if (!has_backward) {
      break;
    }
    if (const auto from = own.next_rank()) {
      receive_object(*from, group_, site);
    }
    if (const auto to = own.previous_rank()) {
      send_object(metadata_bytes, *to, group_, site);
    }
  }
}

void PipelineSchedule::forward(std::int32_t stage_index, std::int32_t microbatch) {
  if (functions_.forward) {
    functions_.forward({.stage = stage_index, .microbatch = microbatch});
  }
}

void PipelineSchedule::backward(std::int32_t stage_index, std::int32_t microbatch, Computation computation) {
  if (!stage(stage_index).has_backward) {
    return;
  }
  const bool counts = computation != Computation::backward_input;
  const bool is_last = counts && ++backwards_[stage_index] == plan_.shape.microbatches;
  if (functions_.backward) {
    functions_.backward({.stage = stage_index,
                         .microbatch = microbatch,
                         .computation = computation,
                         .is_last_backward = is_last});
  }
}

void PipelineSchedule::reduce_grad(std::int32_t stage_index) {
  if (functions_.reduce_grad) {
    const Scope scope(to_string(Action{stage_index, Computation::reduce_grad}));
    functions_.reduce_grad(stage_index);
  }
}

// ScheduleGPipe: all forwards, then all backwards. Sends are waited for at the end of each half.
void PipelineSchedule::run_gpipe(Site site) {
  PipelineStage& own = stages_.front();
  const std::int32_t index = own.index();
  std::vector<Work> sends;
  const auto send_all = [&](const std::vector<PointToPoint>& batch) {
    const std::vector<Work> works = sorted_batch_p2p(batch, site);
    sends.insert(sends.end(), works.begin(), works.end());
  };
  for (std::int32_t microbatch = 0; microbatch < plan_.shape.microbatches; ++microbatch) {
    const Scope scope(to_string(Action{index, Computation::forward, microbatch}));
    wait_batch_p2p(sorted_batch_p2p(own.fwd_recv_ops(), site));
    forward(index, microbatch);
    send_all(own.fwd_send_ops());
  }
  wait_batch_p2p(sends);
  sends.clear();
  for (std::int32_t microbatch = 0; microbatch < plan_.shape.microbatches; ++microbatch) {
    const Scope scope(to_string(Action{index, Computation::full_backward, microbatch}));
    wait_batch_p2p(sorted_batch_p2p(own.bwd_recv_ops(), site));
    backward(index, microbatch, Computation::full_backward);
    send_all(own.bwd_send_ops());
  }
  wait_batch_p2p(sends);
  reduce_grad(index);
}

// Schedule1F1B: a warm-up of forwards; then alternately a backward and a forward, where the send of one and the receive
// of the other are one batch; then the remaining backwards.
void PipelineSchedule::run_1f1b(Site site) {
  PipelineStage& own = stages_.front();
  const std::int32_t index = own.index();
  const std::int32_t microbatches = plan_.shape.microbatches;
  const std::int32_t warmup = std::min(microbatches, plan_.stages() - index);
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  std::vector<Work> send_work;
  std::vector<PointToPoint> fwd_sends;
  const auto run_forward = [&] {
    const Scope scope(to_string(Action{index, Computation::forward, forwards}));
    forward(index, forwards++);
  };
  const auto run_backward = [&] {
    const Scope scope(to_string(Action{index, Computation::full_backward, backwards}));
    backward(index, backwards++, Computation::full_backward);
  };
  const auto exchange = [&](std::string_view what, const std::vector<PointToPoint>& batch) {
    const Scope scope(what);
    return batch_p2p(batch, site);
  };

  while (forwards < warmup) {
    wait_batch_p2p(exchange("fwd_recv", own.fwd_recv_ops()));
    run_forward();
    wait_batch_p2p(send_work);
    fwd_sends = own.fwd_send_ops();
    if (forwards != warmup) {  // the last one goes with the first backward's receive
      send_work = exchange("fwd_send", fwd_sends);
    }
  }
  while (true) {
    wait_batch_p2p(exchange("fwd_send_bwd_recv", joined(std::move(fwd_sends), own.bwd_recv_ops())));
    run_backward();
    if (forwards == microbatches) {
      break;
    }
    wait_batch_p2p(exchange("bwd_send_fwd_recv", joined(own.bwd_send_ops(), own.fwd_recv_ops())));
    run_forward();
    fwd_sends = own.fwd_send_ops();
  }
  send_work = exchange("bwd_send", own.bwd_send_ops());
  while (backwards < microbatches) {
    wait_batch_p2p(exchange("bwd_recv", own.bwd_recv_ops()));
    run_backward();
    wait_batch_p2p(send_work);
    send_work = exchange("bwd_send", own.bwd_send_ops());
  }
  wait_batch_p2p(send_work);
  reduce_grad(index);
}

// _PipelineScheduleRuntime._step_microbatches.
void PipelineSchedule::run_order(Site site) {
  for (const Step& step : plan_.orders[static_cast<std::size_t>(group_.rank())]) {
    perform(step.action, site);
    if (step.overlapped) {
      perform(*step.overlapped, site);
    }
  }
  while (!sends_.empty()) {  // the latest first
    wait_batch_p2p(sends_.back());
    sends_.pop_back();
  }
}

void PipelineSchedule::perform(const Action& action, Site site) {
  const Scope scope(to_string(action));
  const std::pair<std::int32_t, std::int32_t> key{action.stage, action.microbatch};
  switch (action.computation) {
    case Computation::send_f:
      sends_.push_back(batch_p2p(stage(action.stage).fwd_send_ops(), site));
      return;
    case Computation::send_b:
      sends_.push_back(batch_p2p(stage(action.stage).bwd_send_ops(), site));
      return;
    case Computation::recv_f:
      received_activations_[key] = batch_p2p(stage(action.stage).fwd_recv_ops(), site);
      return;
    case Computation::recv_b:
      received_gradients_[key] = batch_p2p(stage(action.stage).bwd_recv_ops(), site);
      return;
    case Computation::forward:
      return compute_forward(action);
    case Computation::full_backward:
    case Computation::backward_input:
      return compute_backward(action);
    case Computation::backward_weight:
      return backward(action.stage, action.microbatch, action.computation);
    case Computation::unshard:
      if (functions_.unshard) {
        functions_.unshard(action.stage);
      }
      return;
    case Computation::reshard:
      if (functions_.reshard) {
        functions_.reshard(action.stage);
      }
      return;
    case Computation::reduce_grad:
      if (functions_.reduce_grad) {
        functions_.reduce_grad(action.stage);
      }
      return;
  }
}

// If the previous stage is on this rank too, its result is passed on without a message.
void PipelineSchedule::compute_forward(const Action& action) {
  const auto received = received_activations_.find({action.stage, action.microbatch});
  if (received != received_activations_.end()) {
    wait_batch_p2p(received->second);
    received_activations_.erase(received);
  }
  forward(action.stage, action.microbatch);
}

void PipelineSchedule::compute_backward(const Action& action) {
  const auto received = received_gradients_.find({action.stage, action.microbatch});
  if (received != received_gradients_.end()) {
    wait_batch_p2p(received->second);
    received_gradients_.erase(received);
  }
  backward(action.stage, action.microbatch, action.computation);
}

}  // namespace rollcall
