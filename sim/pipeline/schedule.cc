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

// send_object_list or recv_object_list of one object, with use_batch: its size, then its bytes. `bytes`: of an object
// that is sent.
void exchange_object(OpKind kind, std::int64_t bytes, Rank peer, const ProcessGroup& group, Site site) {
  const auto exchange = [&](const Tensor& tensor) {
    const PointToPoint message{.kind = kind, .tensor = tensor, .peer = peer, .options = {.group = group}};
    wait_batch_p2p(batch_isend_irecv(std::span(&message, 1), site));
  };
  const Tensor size = Tensor::integer(bytes, Dtype::int64, this_rank().device);
  exchange(size);
  const std::int64_t known =
      kind == OpKind::send ? bytes : size.item_integer();  // only a receiver reads the tensor
  exchange(Tensor::zeros({known}, Dtype::uint8, this_rank().device));
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

// What goes from stage to stage to the last one and, if it comes back, from there to the first.
template <typename Exchange>
void PipelineSchedule::pass_along(bool comes_back, Exchange&& exchange) const {
  const auto pass = [&](std::optional<Rank> from, std::optional<Rank> to) {
    if (from) {
      exchange(OpKind::recv, *from);
    }
    if (to) {
      exchange(OpKind::send, *to);
    }
  };
  for (const PipelineStage& own : stages_) {
    pass(own.previous_rank(), own.next_rank());
  }
  for (const PipelineStage& own : std::views::reverse(stages_)) {
    if (comes_back) {
      pass(own.next_rank(), own.previous_rank());
    }
  }
}

// _warmup_forward_vote, _warmup_backward_result: a product goes down all stages, and comes back up.
void PipelineSchedule::vote(Site site) {
  const Tensor vote = Tensor::full({1}, options_.has_shapes ? 1 : 0, Dtype::int32, this_rank().device);
  pass_along(true, [&](OpKind kind, Rank peer) {
    if (kind == OpKind::recv) {
      recv(vote, peer, {.group = group_}, site);
    } else {
      send(vote, peer, {.group = group_}, site);
    }
  });
}

void PipelineSchedule::infer_shapes(bool has_backward, Site site) {
  pass_along(has_backward, [&](OpKind kind, Rank peer) {
    exchange_object(kind, kind == OpKind::send ? metadata_bytes : 0, peer, group_, site);
  });
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
  // If the neighboring stage is on this rank too, its result is passed on without a message.
  const auto take = [&](Received& received) {
    if (const auto node = received.extract(key)) {
      wait_batch_p2p(node.mapped());
    }
  };
  const auto call = [&](const std::function<void(std::int32_t)>& function) {
    if (function) {
      function(action.stage);
    }
  };
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
      take(received_activations_);
      return forward(action.stage, action.microbatch);
    case Computation::full_backward:
    case Computation::backward_input:
      take(received_gradients_);
      return backward(action.stage, action.microbatch, action.computation);
    case Computation::backward_weight:
      return backward(action.stage, action.microbatch, action.computation);
    case Computation::unshard:
      return call(functions_.unshard);
    case Computation::reshard:
      return call(functions_.reshard);
    case Computation::reduce_grad:
      return call(functions_.reduce_grad);
  }
}

}  // namespace rollcall
