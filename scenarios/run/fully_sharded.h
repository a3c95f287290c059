#pragma once

// A model of kind "fully_shard" on one rank of a scenario.

#include <functional>
#include <memory>
#include <vector>

#include "scenarios/program/program.h"
#include "scenarios/run/model_kernels.h"
#include "scenarios/run/training.h"
#include "sim/train/fully_shard.h"

namespace rollcall::scenario {

class RankFrame;

class FullySharded final : public TrainedObject {
 public:
  // All are borrowed for the lifetime of the object. Throws what fully_shard raises.
  FullySharded(RankFrame& frame, const ObjectSpec& object, const FullyShardedObject& spec);

  // `body` runs once, when the first unit computes.
  void forward(const ModelPass& pass, Site site, const std::function<void()>& body) override;
  void backward(const ModelPass& pass, Site site) override;
  std::shared_ptr<void> no_sync() override { return std::make_shared<FullyShardedModule::NoSync>(module_); }
  void clip_grad_norm(const action::ClipGradNorm& clip, Site site) override {
    module_.clip_grad_norm(clip.max_norm, clip.norm_type, site);
  }
  void call(const action::ShardingCall& call, Site site) override;
  std::vector<Parameter*> parameters() override { return module_.parameters(); }
  bool is_sharded() const override { return true; }
  void state_dict(Site site) override { module_.full_tensors(site); }
  Joinable* joinable() override { refuse_join("FSDPModule"); }

 private:
  Tensor gradient(std::size_t unit, std::size_t parameter, const ModelPass& pass);
  void collect_kernels(const ShardedUnit& unit, const MixedPrecisionPolicy& policy);
  void set_prefetches(const FullyShardedObject& spec);

  RankFrame& frame_;
  FullyShardedModule module_;
  std::vector<ModelKernels> kernels_;  // by unit
  std::vector<std::size_t> before_;    // by unit: how many parameters the first part of its forward uses
  std::vector<TensorList> gradients_;  // by unit, kept from one backward to the next
};

}  // namespace rollcall::scenario
