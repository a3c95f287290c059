#pragma once

// A model of kind "fully_shard" on one rank of a scenario.

#include <cstdint>
#include <functional>
#include <vector>

#include "scenarios/program/program.h"
#include "sim/train/fully_shard.h"

namespace rollcall::scenario {

class RankFrame;

class FullySharded {
 public:
  // Both are borrowed for the lifetime of the object. Throws what fully_shard raises.
  FullySharded(RankFrame& frame, const FullyShardedObject& spec);

  // `body` runs once, where the first unit computes.
  void forward(const ModelPass& pass, Site site, const std::function<void()>& body);
  void backward(const ModelPass& pass, Site site);
  void call(const action::ShardingCall& call, Site site);
  FullyShardedModule& module() { return module_; }

 private:
  // How long a unit computes.
  struct Times {
    Duration forward = 0;
    Duration backward = 0;
  };

  Tensor gradient(std::size_t unit, std::size_t parameter, const ModelPass& pass);
  void collect_times(const ShardedUnit& unit);
  void set_prefetches(const FullyShardedObject& spec);

  RankFrame& frame_;
  FullyShardedModule module_;
  std::vector<Times> times_;
  std::vector<TensorList> gradients_;  // of every unit, from one backward to the next
};

}  // namespace rollcall::scenario
