#include "sim/pipeline/stage.h"

#include <algorithm>
#include <map>

#include "sim/c10d/groups.h"
#include "sim/c10d/rank_context.h"

namespace rollcall {

PipelineStage::PipelineStage(const PipelinePlan& plan, std::int32_t stage, ProcessGroup group,
                             const std::vector<StageTensor>& tensors)
    : plan_(&plan), index_(stage), group_(group), tensors_(&tensors) {
  for (const StageTensor& tensor : tensors) {
    sent_.push_back(Tensor::ones(tensor.shape, tensor.dtype, this_rank().device));
  }
}

Rank PipelineStage::global_rank(std::int32_t stage) const {
  return group_.members()
      .ranks[static_cast<std::size_t>(plan_->rank_of_stage[static_cast<std::size_t>(stage)])];
}

std::optional<Rank> PipelineStage::other_rank(std::int32_t stage) const {
  const Rank rank = global_rank(stage);
  return rank == this_rank().rank ? std::nullopt : std::optional<Rank>(rank);
}

std::vector<PointToPoint> PipelineStage::messages(OpKind kind, std::int32_t peer_stage,
                                                  bool of_gradients) const {
  std::vector<PointToPoint> batch;
  if (peer_stage < 0 || peer_stage == plan_->stages() || (of_gradients && !has_backward)) {
    return batch;
  }
  for (std::size_t i = 0; i < tensors_->size(); ++i) {
    const StageTensor& tensor = (*tensors_)[i];
    if (of_gradients && !tensor.requires_grad) {
      continue;
    }
    batch.push_back({.kind = kind,
                     .tensor = kind == OpKind::send
                                   ? sent_[i]
                                   : Tensor::zeros(tensor.shape, tensor.dtype, this_rank().device),
                     .peer = global_rank(peer_stage),
                     .options = {.group = group_}});
  }
  return batch;
}

std::vector<Work> batch_p2p(const std::vector<PointToPoint>& batch, Site site) {
  if (batch.empty()) {
    return {};
  }
  const bool is_mixed = std::ranges::any_of(
      batch, [&](const PointToPoint& message) { return message.kind != batch.front().kind; });
  if (is_mixed) {
    return batch_isend_irecv(batch, site);
  }
  std::vector<Work> works;
  for (const PointToPoint& message : batch) {
    works.push_back(message.kind == OpKind::send
                        ? isend(message.tensor, message.peer, message.options, site)
                        : irecv(message.tensor, message.peer, message.options, site));
  }
  return works;
}

std::vector<Work> sorted_batch_p2p(const std::vector<PointToPoint>& batch, Site site) {
  std::map<Rank, std::vector<PointToPoint>> by_peer;
  for (const PointToPoint& message : batch) {
    by_peer[message.peer].push_back(message);
  }
  std::vector<Work> works;
  for (const auto& [peer, messages] : by_peer) {
    const std::vector<Work> more = batch_p2p(messages, site);
    works.insert(works.end(), more.begin(), more.end());
  }
  return works;
}

void wait_batch_p2p(const std::vector<Work>& works) {
  for (const Work& work : works) {
    work.wait();
  }
}

}  // namespace rollcall
