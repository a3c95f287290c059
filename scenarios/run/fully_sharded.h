#pragma once

// A model of kind "fully_shard" on one rank of a scenario.

#include <cstdint>
#include <functional>
#include <vector>

#include "scenarios/program/program.h"
#include "scenarios/run/model_kernels.h"
#include "sim/train/fully_shard.h"

namespace rollcall::scenario {

class RankFrame;

class FullySharded {
 public:
  // Both are borrowed for the lifetime of the object. Throws what fully_shard raises.
  FullySharded(RankFrame& frame, const FullyShardedObject& spec);

  // `body` runs once, when the first unit computes.
  void forward(const ModelPass& pass, Site site, const std::function<void()>& body);
  void backward(const ModelPass& pass, Site site);
  void call(const action::ShardingCall& call, Site site);
  FullyShardedModule& module() { return module_; }

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
