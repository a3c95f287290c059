#pragma once

// PipelineStage: what one stage of a pipeline sends and receives (torch/distributed/pipelining/stage.py). The stage
// computes nothing: it knows the tensors that cross its two borders, and the ranks beyond them.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/process_group.h"
#include "sim/pipeline/plan.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

// One tensor that goes from a stage to the next, for one microbatch. Its gradient comes back.
struct StageTensor {
  Shape shape{1};
  Dtype dtype = Dtype::float32;
  bool requires_grad = true;
};

class PipelineStage {
 public:
  // plan: borrowed. group: the pipeline's, whose ranks the plan counts.
  PipelineStage(const PipelinePlan& plan, std::int32_t stage, ProcessGroup group,
                const std::vector<StageTensor>& tensors);

  std::int32_t index() const { return index_; }
  bool is_first() const { return index_ == 0; }
  bool is_last() const { return index_ + 1 == plan_->stages(); }

  // get_fwd_recv_ops and its counterparts: the messages of one microbatch; empty at the pipeline's ends. Receives use
  // new tensors. The two for gradients are empty when only a forward runs.
  std::vector<PointToPoint> fwd_recv_ops() const { return messages(OpKind::recv, index_ - 1, false); }
  std::vector<PointToPoint> fwd_send_ops() const { return messages(OpKind::send, index_ + 1, false); }
  std::vector<PointToPoint> bwd_recv_ops() const { return messages(OpKind::recv, index_ + 1, true); }
  std::vector<PointToPoint> bwd_send_ops() const { return messages(OpKind::send, index_ - 1, true); }
  bool has_backward = true;

  // The global rank of the neighboring stage; empty beyond the ends, and if it is the caller's own.
  std::optional<Rank> previous_rank() const { return is_first() ? std::nullopt : other_rank(index_ - 1); }
  std::optional<Rank> next_rank() const { return is_last() ? std::nullopt : other_rank(index_ + 1); }

 private:
  std::optional<Rank> other_rank(std::int32_t stage) const;
  Rank global_rank(std::int32_t stage) const;
  std::vector<PointToPoint> messages(OpKind kind, std::int32_t peer_stage, bool of_gradients) const;

  const PipelinePlan* plan_;
  std::int32_t index_;
  ProcessGroup group_;
  const std::vector<StageTensor>* tensors_;
  TensorList sent_;  // what sends read: every microbatch has the same values
};

// _batch_p2p: a batch of only sends, or only receives, is issued one by one, so that NCCL does not tie independent
// messages together; a mixed one as batch_isend_irecv.
std::vector<Work> batch_p2p(const std::vector<PointToPoint>& batch, Site site);
// _sorted_batch_p2p: one batch per peer, in the order of the peers.
std::vector<Work> sorted_batch_p2p(const std::vector<PointToPoint>& batch, Site site);
// _wait_batch_p2p.
void wait_batch_p2p(const std::vector<Work>& works);

}  // namespace rollcall
