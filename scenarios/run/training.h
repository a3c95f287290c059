#pragma once

// Training: the models and optimizers of one rank of a scenario.

#include <functional>
#include <map>
#include <memory>

#include "scenarios/program/program.h"
#include "scenarios/run/fully_sharded.h"
#include "scenarios/run/model_kernels.h"
#include "sim/train/checkpoint.h"
#include "sim/train/ddp.h"
#include "sim/train/fsdp.h"
#include "sim/train/zero.h"

namespace rollcall::scenario {

class RankFrame;

class Training {
 public:
  // Constructs the objects in the order of the file. Blocks, and throws what DDP's constructor throws. `frame`
  // is borrowed for the lifetime of the object.
  explicit Training(RankFrame& frame);

  // Runs DDP's part of a forward pass around `module_forward`.
  void forward(TableIndex object, const ModelPass& pass, Site site,
               const std::function<void()>& module_forward);
  // Produces gradients for all parameters except the unused ones, in reverse order.
  void backward(TableIndex object, const ModelPass& pass, Site site);
  void step(TableIndex object, Site site);
  // `object`: a model, or an optimizer, which stands for its model.
  void zero_grad(TableIndex object, bool set_to_none);
  // For a sharded model, gathers every unit's parameters on every rank; for a sharded optimizer, throws RuntimeError
  // unless its state was consolidated here. Otherwise it is local.
  void state_dict(TableIndex object, Site site);
  // Adds the parameters of a model to a checkpoint's state: shards if it is sharded.
  void add_state(TableIndex object, checkpoint::StateDict& state);
  // Gathers the state of a sharded optimizer on this rank of its group. Blocks.
  void consolidate(TableIndex object, std::int64_t to, Site site);

  // Methods of a model of kind "fully_shard".
  void call_sharded(const action::ShardingCall& call, Site site);
  void clip_grad_norm(const action::ClipGradNorm& clip, Site site);

  // Starts no_sync for as long as the result lives.
  std::shared_ptr<void> no_sync(TableIndex object);
  // Null for an object that is neither a model nor a sharded optimizer. Throws AttributeError for a sharded model,
  // which has no join_hook.
  Joinable* joinable(TableIndex object);

 private:
  struct Model {
    Module module;
    std::unique_ptr<DistributedDataParallel> ddp{};
    ModelKernels kernels;
    std::vector<std::size_t> trainable{};  // of the kernels' parameters, as DDP counts them
  };
  struct Sharded {
    std::unique_ptr<FullyShardedDataParallel> fsdp;
    ModelKernels kernels;
    std::vector<std::size_t> starts;  // of each unit's parameters among the kernels', and their end
  };
  struct OneOptimizer {
    std::unique_ptr<Optimizer> local;
    std::unique_ptr<ZeroRedundancyOptimizer> zero;  // one of the two
  };

  void construct(TableIndex object, const ModelObject& spec);
  void construct(TableIndex object, const ShardedObject& spec);
  void construct(TableIndex object, const FullyShardedObject& spec);
  void construct(TableIndex object, const OptimizerObject& spec);
  Tensor gradient_like(const Tensor& parameter, const Shape& shape, const ModelPass& pass) const;
  // Throws NameError for an object whose group the rank does not belong to.
  DistributedDataParallel& model(TableIndex object);
  FullyShardedDataParallel* sharded(TableIndex object) const;
  FullySharded* fully_sharded(TableIndex object) const;
  FullySharded& require_fully_sharded(TableIndex object) const;
  OneOptimizer& optimizer(TableIndex object);
  // True for kind "dp": only the program's own statements run.
  bool is_local(TableIndex object) const;
  [[noreturn]] void refuse(TableIndex object) const;

  RankFrame& frame_;
  std::map<TableIndex, Model> models_;  // nodes: DDP keeps a reference to its module
  std::map<TableIndex, Sharded> sharded_;
  std::map<TableIndex, std::unique_ptr<FullySharded>> fully_sharded_;
  std::map<TableIndex, OneOptimizer> optimizers_;
};

}  // namespace rollcall::scenario
