#pragma once

// The parameters of one fully_shard call, which communicate together
// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py): one all_gather makes them
// whole, one reduce_scatter reduces their gradients, and in HSDP an all_reduce follows. The names of methods and
// states are torch's, so that the two can be read side by side.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/stream.h"
#include "sim/train/flat.h"
#include "sim/train/fsdp_param.h"

namespace rollcall {

class FsdpParamGroup;

// Waits for the event, if there is one, and forgets it.
inline void wait_once(std::optional<Event>& event) {
  if (event) {
    std::exchange(event, std::nullopt)->wait();
  }
}

// The state that all groups of a model share: the streams, and the order of their forwards.
struct FsdpCommContext {
  void lazy_init();
  // Makes the streams of all_gathers wait for the event.
  void wait_for_all_gathers(const Event& event) const;
  // Called at the end of a forward: releases what the last all_gather left.
  void release_gathered();

  bool is_initialized = false;
  Stream copy_in;
  Stream all_gather;
  Stream reduce_scatter;
  Stream all_reduce;
  std::optional<Event>
      gathered_before;  // copied out by the previous group: in forward, one more may be in flight
  std::optional<Event> reduced_before;  // at most one reduce_scatter's input is kept
  std::optional<Event> last_reduced;
  std::optional<Event> last_all_reduced;
  std::vector<FsdpParamGroup*> post_forward_order;
};

// Where a group's parameters are sharded, and where their shards are replicated.
struct FsdpMesh {
  ProcessGroup shard;
  ProcessGroup replicate{};  // none: not HSDP
};

class FsdpParamGroup {
 public:
  enum class TrainingState : std::uint8_t { idle, forward, pre_backward, post_backward };
  enum class ReshardAfterForward : std::uint8_t { no, yes, to_smaller_group };

  // name: of the unit, for labels; owner: of the model, for pairings.
  FsdpParamGroup(const std::string& name, const std::string& owner, const std::vector<Parameter>& parameters,
                 FsdpMesh mesh, MixedPrecisionPolicy policy, FsdpCommContext& context);

  // Throws AssertionError unless all trainable parameters have one dtype.
  void lazy_init();

  void pre_forward(Site site);
  void post_forward();
  void pre_backward(bool default_prefetch, Site site);
  void post_backward(Site site);
  void finalize_backward();
  void prefetch(TrainingState pass, Site site);
  void unshard(Site site);
  void wait_for_unshard();
  void reshard();
  void to_sharded();
  // Turns the outputs of reduce_scatters since the last call into gradients. The host waits for them.
  void settle_gradients();

  std::vector<FsdpParam>& params() { return params_; }
  const std::vector<FsdpParam>& params() const { return params_; }
  const FsdpMesh& mesh() const { return mesh_; }
  bool is_unsharded() const { return state_ == ShardedState::unsharded; }
  // The whole parameter, from the last all_gather. The host waits for it. Throws RuntimeError while sharded.
  Tensor unsharded_param(std::size_t index) const;

  TrainingState training_state = TrainingState::idle;
  ReshardAfterForward reshard_after_forward = ReshardAfterForward::yes;
  ProcessGroup post_forward_group{};  // of to_smaller_group
  bool reduce_grads = true;
  bool all_reduce_grads = true;
  bool reshard_after_backward = true;
  bool unshard_in_backward = true;
  bool reduce_scatter_unused_params = false;
  bool force_sum_reduction_for_comms = false;
  std::optional<double> gradient_divide_factor{};

 private:
  enum class ShardedState : std::uint8_t { sharded, sharded_post_forward, unsharded };

  struct DivideFactors {
    double before = 1;
    double after = 1;
    ReduceOp reduce_scatter = ReduceOp::sum;
    ReduceOp all_reduce = ReduceOp::sum;
    double premul = 1;
  };

  const ProcessGroup& all_gather_group() const;
  Rank shard_size() const { return mesh_.shard.size(); }
  bool has_streams_of_its_own() const;
  void fill_all_gather_input();
  void fill_from_gathered(std::int64_t numel, Dtype dtype, Device device);
  void backward_prefetch(Site site);
  void collect_gradients();
  void reduce(Site site);
  DivideFactors divide_factors(Dtype dtype) const;
  void fill_reduce_scatter_input(Dtype dtype);
  void reduce_scatter(const DivideFactors& factors, Site site);
  void all_reduce(const DivideFactors& factors, Site site);

  std::vector<FsdpParam> params_;
  FsdpMesh mesh_;
  MixedPrecisionPolicy policy_;
  FsdpCommContext& context_;
  std::string gather_label_;
  std::string reduce_label_;
  std::string gather_pairing_;
  std::string reduce_pairing_;
  bool was_reset_ = false;
  ShardedState state_ = ShardedState::sharded;

  Tensor all_gather_input_;
  Tensor all_gather_output_;
  std::optional<Event> gathered_;      // an all_gather not yet waited for
  std::optional<Event> resharded_;     // to the smaller group
  Rank gathered_from_ = 0;             // the ranks whose parts the output holds
  std::vector<std::size_t> forwards_;  // of this group, by their places in the shared order

  Tensor reduce_scatter_input_;
  Tensor reduce_output_;
  Tensor partial_reduce_output_;          // HSDP, while all_reduces are postponed
  std::vector<std::uint32_t> with_grad_;  // parameters that this backward gave a gradient
  std::vector<std::uint32_t> reduced_;    // those whose gradients are in reduce_output_
  double divide_after_ = 1;
  std::optional<Event> reduced_event_;

  TensorList sources_;  // of the layout in progress; kept for their memory, like the next
  std::vector<FlatPiece> pieces_;
};

}  // namespace rollcall
