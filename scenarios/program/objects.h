#pragma once

// The objects of a scenario, as the file describes them: joinables, models, optimizers, and what is parallel in other
// ways than over data. run/training.h and run/parallelism.h have what a rank makes of them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/program/block.h"
#include "scenarios/program/devices.h"
#include "scenarios/program/operand.h"
#include "sim/base/time.h"
#include "sim/dtensor/parallel_module.h"
#include "sim/dtensor/ring_attention.h"
#include "sim/pipeline/schedule.h"
#include "sim/tensor/dtype.h"
#include "sim/tensor/tensor.h"
#include "sim/train/comm_hooks.h"
#include "sim/train/data_parallel.h"
#include "sim/train/ddp.h"
#include "sim/train/fsdp.h"
#include "sim/train/fully_shard.h"
#include "sim/train/optimizer.h"
#include "sim/train/zero.h"

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

// Kind "joinable".
struct JoinableObject {
  bool notify = true;                           // forward begins with Join.notify_join_context
  std::optional<DeviceTemplate> join_device{};  // none: the rank's device
  Block forward;
  Block main_hook;
  Block post_hook;
  // Scopes: the names of the three in reports, and what the last one pairs with. The first two pair by name.
  std::string forward_scope;
  std::string main_hook_scope;
  std::string post_hook_scope;
};

// Kind "ddp". It is constructed when the program starts, by every member of its group.
struct ModelObject {
  std::vector<ParameterSpec> parameters;
  std::vector<ParameterSpec> buffers;
  DdpOptions options;  // without the group
  CommHook comm_hook;  // empty: DDP's own all_reduce
  ModelWork work;
};

// Kind "dp": one process, several GPUs. It issues nothing; reports say how much of each GPU it takes.
struct DataParallelObject {
  DataParallelOptions options;
};

// Kind "fsdp". Constructed like a model.
struct ShardedObject {
  std::vector<std::vector<ParameterSpec>> units;  // the root's first
  FsdpOptions options;                            // without groups
  std::optional<SlotIndex> replicate_group;       // of a hybrid strategy
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

// Kind "fully_shard". Constructed like a model.
struct FullyShardedObject {
  ShardedUnit root;
  std::vector<std::string> unit_names;       // as FullyShardedModule counts them
  FullyShardOptions options;                 // without groups
  std::optional<SlotIndex> replicate_group;  // of HSDP
  std::int64_t forward_prefetch = 0;         // units that each unit prefetches
  std::int64_t backward_prefetch = 0;
  bool reduce_scatter_unused_params = false;
};

// Kind "zero" or "optimizer".
struct OptimizerObject {
  std::uint32_t model = 0;  // of Program::objects
  OptimizerOptions options;
  bool is_zero = false;  // of a sharded model, never: its optimizer has the shards alone
  ZeroOptions zero;      // without the group
};

// Kind "pipeline".
struct PipelineObject {
  std::shared_ptr<const PipelinePlan> plan;
  PipelineOptions options;  // without the group
  // The statements of a stage, with the variables stage and microbatch.
  Block forward;
  Block backward;         // of the inputs: B and I
  Block backward_weight;  // B and W
  Block unshard;
  Block reshard;
  Block reduce_grad;
};

// Kind "tensor_parallel".
struct ParallelModuleObject {
  ParallelInput input;
  std::vector<ParallelLayer> layers;
};

// Kind "context_parallel".
struct RingObject {
  RingOptions options;  // without the group
};

using ObjectKind =
    std::variant<JoinableObject, ModelObject, DataParallelObject, ShardedObject, FullyShardedObject,
                 OptimizerObject, PipelineObject, ParallelModuleObject, RingObject>;

struct ObjectSpec {
  std::string name;
  std::uint32_t line = 0;  // where the file describes it
  std::uint32_t column = 0;
  SlotIndex group = no_slot;  // of the frame's groups; no_slot: world
  ObjectKind kind{};
};

// What a statement does with a pipeline, a parallel module or a ring.
enum class ParallelVerb : std::uint8_t { parallelize, forward, backward, step, eval };

}  // namespace rollcall::scenario
