#pragma once

// The objects of a scenario that are parallel in other ways than over data: pipelines, modules in tensor parallel, and
// attention in context parallel, as the file describes them. run/parallelism.h has what a rank makes of them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/program/block.h"
#include "scenarios/program/operand.h"
#include "sim/dtensor/parallel_module.h"
#include "sim/dtensor/ring_attention.h"
#include "sim/pipeline/schedule.h"

namespace rollcall::scenario {

// An object of kind "pipeline".
struct PipelineObject {
  std::string name;
  SlotIndex group = no_slot;  // of the frame's groups; no_slot: world
  std::shared_ptr<const PipelinePlan> plan;
  std::vector<StageTensor> tensors;
  bool has_shapes = true;
  // The statements of a stage, with the variables stage and microbatch.
  Block forward;
  Block backward;         // of the inputs: B and I
  Block backward_weight;  // B and W
  Block unshard;
  Block reshard;
  Block reduce_grad;
};

// An object of kind "tensor_parallel".
struct ParallelModuleObject {
  std::string name;
  SlotIndex group = no_slot;
  ParallelInput input;
  std::vector<ParallelLayer> layers;
};

// An object of kind "context_parallel".
struct RingObject {
  std::string name;
  SlotIndex group = no_slot;
  RingOptions options;  // without the group
};

// By index of Program::objects.
struct ParallelObjects {
  std::map<std::uint32_t, PipelineObject> pipelines;
  std::map<std::uint32_t, ParallelModuleObject> modules;
  std::map<std::uint32_t, RingObject> rings;
  SlotIndex stage = no_slot;  // of the frame's variables, if there is a pipeline
  SlotIndex microbatch = no_slot;

  bool empty() const { return pipelines.empty() && modules.empty() && rings.empty(); }
  bool contains(std::uint32_t object) const {
    return pipelines.contains(object) || modules.contains(object) || rings.contains(object);
  }
};

// What a statement does with one of these objects.
enum class ParallelVerb : std::uint8_t { parallelize, forward, backward, step, eval };

}  // namespace rollcall::scenario
