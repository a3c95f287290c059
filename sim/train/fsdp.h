#pragma once

// FullyShardedDataParallel: parameters, gradients and optimizer state sharded over the ranks (torch/distributed/fsdp).
// A model is split into units, the first of which is the root; each unit's parameters are one flat tensor, of which
// every rank keeps an equal part.
//
//   forward   all_gather of a unit, its layers, and the full parameters are freed again (the root's are kept)
//   backward  in reverse: all_gather, gradients, reduce_scatter of their average. The all_gather of the next unit
//             comes before the reduce_scatter, unless nothing is prefetched.
//
// A hybrid strategy shards inside one group and replicates across another: an all_reduce of the rank's part follows
// every reduce_scatter.
//
// As in PyTorch, it is not a Joinable: on uneven inputs no rank shadows it. The behavior of 2.x was compared with
// PyTorch 2.14 (tests/data/torch_2_14/fsdp/fsdp1_*).

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/stream.h"
#include "sim/train/fsdp_param.h"
#include "sim/train/module.h"

namespace rollcall {

enum class ShardingStrategy : std::uint8_t {
  full_shard,          // frees a unit's parameters after its forward and its backward
  shard_grad_op,       // frees them after the backward only: one all_gather per step
  no_shard,            // every rank keeps everything: gradients are all-reduced, as in DDP
  hybrid_shard,        // full_shard inside `group`, replicas across `replicate_group`
  hybrid_shard_zero2,  // shard_grad_op inside `group`
};

// By torch's name: "FULL_SHARD".
std::optional<ShardingStrategy> parse_sharding_strategy(std::string_view name);

// When the unit that comes next in backward is gathered.
enum class BackwardPrefetch : std::uint8_t {
  pre,   // before the gradients of a unit
  post,  // after them
  none,  // when it is needed
};

struct FsdpOptions {
  ProcessGroup group{};            // none: the world. Hybrid strategies have to name it
  ProcessGroup replicate_group{};  // of a hybrid strategy
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  std::optional<BackwardPrefetch>
      backward_prefetch{};        // none: the default of the PyTorch that the run simulates
  bool forward_prefetch = false;  // from the second step on
  MixedPrecisionPolicy
      mixed_precision{};  // torch.distributed.fsdp.MixedPrecision. reduce_dtype follows param_dtype
  std::string name{};     // in reports
};

class FullyShardedDataParallel {
 public:
  // units: the root's parameters first, which may be none. Keeps this rank's shards of them; no communication. Throws
  // ValueError for other units without parameters, and for a hybrid strategy without both groups.
  explicit FullyShardedDataParallel(const std::vector<Module>& units, FsdpOptions options = {});
  FullyShardedDataParallel(const FullyShardedDataParallel&) = delete;
  FullyShardedDataParallel& operator=(const FullyShardedDataParallel&) = delete;

  // Runs every unit's layers, root first. Blocks.
  void forward(const std::function<void(std::size_t unit)>& layers = {}, Site site = Site::here());
  // gradient: of all elements of a unit's flat parameter. Units in reverse order. Blocks.
  void backward(const std::function<Tensor(std::size_t unit, const Shape& shape)>& gradient,
                Site site = Site::here());

  // While the guard lives, gradients only accumulate, unsharded.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(FullyShardedDataParallel& model)
        : model_(model), outer_(std::exchange(model.sync_gradients_, false)) {}
    ~NoSync() { model_.sync_gradients_ = outer_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    FullyShardedDataParallel& model_;
    bool outer_;
  };
  NoSync no_sync() { return NoSync(*this); }

  // state_dict() of kind FULL_STATE_DICT: gathers the parameters of every unit, and frees them again. Every rank
  // of the group has to call it. Blocks. Returns each unit's flat parameter, with its padding.
  TensorList gather_state(Site site = Site::here());
  // model.clip_grad_norm_(): an all_reduce of one number, where gradients are sharded. Blocks.
  double clip_grad_norm(double max_norm, double norm_type = 2, Site site = Site::here());

  // This rank's part of every unit, with its gradients: what the optimizer updates.
  std::vector<Parameter>& shards() { return shards_; }
  ProcessGroup group() const { return group_; }

 private:
  struct Unit {
    std::int64_t numel = 0;
    std::int64_t padded = 0;  // elements, a multiple of the ranks where it is sharded
    Tensor whole;             // as last gathered
    bool is_whole = false;
    bool is_prefetched = false;
    bool needs_unshard = false;  // in this backward
    Tensor accumulated;          // gradients under no_sync
    Tensor to_reduce;
    Tensor reduced;  // by this backward
  };

  bool is_sharded() const { return options_.strategy != ShardingStrategy::no_shard; }
  bool is_hybrid() const {
    return options_.strategy == ShardingStrategy::hybrid_shard ||
           options_.strategy == ShardingStrategy::hybrid_shard_zero2;
  }
  // True if a unit's parameters are freed between its forward and its backward.
  bool frees_after_forward() const {
    return options_.strategy == ShardingStrategy::full_shard ||
           options_.strategy == ShardingStrategy::hybrid_shard;
  }
  Dtype compute_dtype(std::size_t unit) const;
  Dtype reduce_dtype(std::size_t unit) const;
  bool exists(std::size_t unit) const { return units_[unit].padded > 0; }
  void begin_forward();
  void unshard(std::size_t unit, Site site);
  void unshard_as(std::size_t unit, Dtype dtype, Site site);
  void wait_for_unshard() const;
  void reshard(std::size_t unit);
  void prefetch(std::size_t unit, Site site);
  void pre_backward(std::size_t unit, Site site);
  void post_backward(std::size_t unit, Site site);
  void finish_backward();
  void reduce(std::size_t unit, Site site);
  void reduce_replicas(const Tensor& part, Site site);
  Rank averaged() const { return group_.size() * replicas_; }  // ranks whose gradients are averaged
  double divide_before() const;
  Tensor without_padding(std::size_t unit, const Tensor& part) const;

  FsdpOptions options_;
  ProcessGroup group_;
  BackwardPrefetch prefetch_ = BackwardPrefetch::pre;
  std::vector<Unit> units_;
  std::vector<Parameter> shards_;
  Rank replicas_ = 1;  // of every shard
  std::string gather_pairing_;
  std::string reduce_pairing_;
  bool sync_gradients_ = true;
  bool is_first_step_ = true;

  bool has_streams_ = false;
  Stream unshard_stream_;
  Stream reduce_stream_;
  Stream all_reduce_stream_;  // of hybrid strategies
  std::deque<Event> freed_;   // at most two all_gathers are in flight
};

}  // namespace rollcall
