#pragma once

// FullyShardedDataParallel: parameters, gradients and optimizer state sharded over the ranks
// (torch/distributed/fsdp/fully_sharded_data_parallel.py). A model is cut into units, the first of which is
// the root; each unit's parameters are one flat tensor, of which every rank keeps an equal part.
//
//   forward   all_gather of a unit, its layers, and the whole is freed again (the root's is kept)
//   backward  in reverse: all_gather, gradients, reduce_scatter of their average
//
// It is no Joinable, in PyTorch neither: on uneven inputs nobody shadows it.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/train/module.h"

namespace rollcall {

enum class ShardingStrategy : std::uint8_t {
  full_shard,     // frees a unit's parameters after its forward and its backward
  shard_grad_op,  // frees them after the backward only: one all_gather per step
  no_shard,       // every rank keeps everything: gradients are all-reduced, as in DDP
};

struct FsdpOptions {
  ProcessGroup group{};  // none: the world
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  std::string name{};  // in reports
};

class FullyShardedDataParallel {
 public:
  // units: the root's parameters first. Keeps this rank's shards of them; no communication.
  // ValueError when there are none.
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
  // of the group has to call it. Blocks.
  void gather_state(Site site = Site::here());

  // This rank's part of every unit, with its gradients: what the optimizer updates.
  std::vector<Parameter>& shards() { return shards_; }
  ProcessGroup group() const { return group_; }

 private:
  struct Unit {
    std::int64_t padded = 0;  // elements, a multiple of the ranks
    Tensor whole;             // while gathered
    Tensor accumulated;       // gradients under no_sync
  };

  bool is_sharded() const { return options_.strategy != ShardingStrategy::no_shard; }
  void unshard(std::size_t unit, Site site);
  void reduce(std::size_t unit, Tensor gradient, Site site);

  FsdpOptions options_;
  ProcessGroup group_;
  std::vector<Unit> units_;
  std::vector<Parameter> shards_;
  std::string gather_pairing_;
  std::string reduce_pairing_;
  bool sync_gradients_ = true;
};

}  // namespace rollcall
