#pragma once

// The objects of a scenario that train: models in DistributedDataParallel, and optimizers, as the file describes them.
// run/training.h has what a rank makes of them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/program/expression.h"
#include "scenarios/program/operand.h"
#include "sim/base/time.h"
#include "sim/tensor/dtype.h"
#include "sim/tensor/tensor.h"
#include "sim/train/data_parallel.h"
#include "sim/train/fsdp.h"
#include "sim/train/fully_shard.h"
#include "sim/train/optimizer.h"

namespace rollcall::scenario {

struct ParameterSpec {
  std::string name;
  Shape shape;
  Dtype dtype = Dtype::float32;
  double value = 1;  // every element, before rank 0's are broadcast
  bool requires_grad = true;
};

// The work of a model, or of a unit of one, on the rank's GPU. Its parameters share it by their sizes.
struct ModelWork {
  Duration forward_time = 0;
  Duration backward_time = 0;
  Operand tokens;  // instead: per token and parameter element, 2 operations forward and 4 backward

  bool has_times() const { return forward_time > 0 || backward_time > 0; }
};

enum class CommHookName : std::uint8_t { ddp_default, allreduce, fp16_compress, bf16_compress };

// An object of kind "ddp". It is constructed when the program starts, by every member of its group.
struct ModelObject {
  std::string name;
  std::uint32_t line = 0;  // where the file describes it
  std::uint32_t column = 0;
  SlotIndex group = no_slot;  // of the frame's groups; no_slot: world
  std::vector<ParameterSpec> parameters;
  std::vector<ParameterSpec> buffers;
  std::optional<std::int64_t> bucket_cap_bytes{};
  std::int64_t first_bucket_bytes = 1024 * 1024;
  std::vector<std::int64_t> bucket_cap_list{};
  std::optional<bool> broadcast_buffers{};
  std::optional<bool> forward_sync_buffers{};
  bool skip_all_reduce_unused_params = false;
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  CommHookName comm_hook = CommHookName::ddp_default;
  ModelWork work;
};

// An object of kind "dp": one process, several GPUs. It issues nothing; reports say how much of each GPU it takes.
struct DataParallelObject {
  std::string name;
  DataParallelOptions options;
};

// An object of kind "fsdp". Constructed like a model.
struct ShardedObject {
  std::string name;
  SlotIndex group = no_slot;
  std::vector<std::vector<ParameterSpec>> units;  // the root's first
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  SlotIndex replicate_group = no_slot;
  bool is_hybrid = false;  // has a replicate_group
  MixedPrecisionPolicy mixed_precision;
  ModelWork work;
};

// A unit of an object of kind "fully_shard", or its root.
struct ShardedUnit {
  std::string name;
  std::vector<ParameterSpec> parameters;
  std::size_t before = 0;  // the number of them used before the inner units
  std::vector<ShardedUnit> units;
  std::optional<ReshardAfterForward> reshard_after_forward;
  ModelWork work;
};

// An object of kind "fully_shard". Constructed like a model.
struct FullyShardedObject {
  std::string name;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  SlotIndex group = no_slot;
  SlotIndex replicate_group = no_slot;
  bool is_hybrid = false;  // has a replicate_group
  ShardedUnit root;
  std::vector<std::string> unit_names;  // as FullyShardedModule counts them
  ReshardAfterForward reshard_after_forward;
  MixedPrecisionPolicy mp_policy;
  std::int64_t forward_prefetch = 0;  // units that each unit prefetches
  std::int64_t backward_prefetch = 0;
  bool reduce_scatter_unused_params = false;
};

// An object of kind "zero" or "optimizer".
struct OptimizerObject {
  std::string name;
  std::uint32_t model = 0;  // of Program::objects
  bool is_zero = false;
  bool parameters_as_bucket_view = false;
  OptimizerOptions options;
};

// By index of Program::objects; an object is a joinable, a model or an optimizer.
struct TrainingObjects {
  std::map<std::uint32_t, ModelObject> models;
  std::map<std::uint32_t, ShardedObject> sharded;
  std::map<std::uint32_t, FullyShardedObject> fully_sharded;
  std::map<std::uint32_t, DataParallelObject> data_parallel;
  std::map<std::uint32_t, OptimizerObject> optimizers;

  bool empty() const {
    return models.empty() && sharded.empty() && fully_sharded.empty() && data_parallel.empty();
  }
};

}  // namespace rollcall::scenario
