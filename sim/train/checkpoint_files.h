#pragma once

// The checkpoints that ranks have saved with torch.distributed.checkpoint: the file system that all hosts see. Only the
// calls around them order writes and reads, as on a real one.

#include <map>
#include <string>

#include "sim/c10d/op.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

struct SavedTensor {
  Tensor written;                // by the one rank that the plan chose; null for a sharded tensor
  std::map<Rank, Tensor> parts;  // what each rank had: its shard, or its copy
};

using SavedState = std::map<std::string, SavedTensor>;

struct CheckpointFiles {
  std::map<std::string, SavedState> by_id;       // by checkpoint_id: what can be loaded
  std::map<std::string, SavedState> unfinished;  // of saves in progress, whose metadata comes last
};

}  // namespace rollcall
