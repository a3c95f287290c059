#include "scenarios/run/parallelism.h"

#include <fmt/core.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/base/error.h"

namespace rollcall::scenario {

Parallelism::Parallelism(RankFrame& frame) : frame_(frame) {
  const ParallelObjects& objects = frame.program().parallel;
  for (const auto& [object, spec] : objects.pipelines) {
    construct(object, spec);
  }
  for (const auto& [object, spec] : objects.modules) {
    if (const ProcessGroup group = frame.group(spec.group); group.is_member()) {
      modules_.emplace(object, ParallelModule(group, spec.input, spec.layers));
    }
  }
  for (const auto& [object, spec] : objects.rings) {
    if (const ProcessGroup group = frame.group(spec.group); group.is_member()) {
      RingOptions options = spec.options;
      options.group = group;
      rings_.emplace(object, RingAttention(options));
    }
  }
}

void Parallelism::construct(TableIndex object, const PipelineObject& spec) {
  const ProcessGroup group = frame_.group(spec.group);
  if (group.is_member()) {
    pipelines_[object] = std::make_unique<PipelineSchedule>(
        *spec.plan, PipelineOptions{.group = group, .tensors = spec.tensors, .has_shapes = spec.has_shapes},
        functions_of(spec));
  }
}

StageFunctions Parallelism::functions_of(const PipelineObject& spec) {
  const auto run_for_stage = [this](const Block& block) {
    return [this, &block](std::int32_t stage) { run_stage(block, stage, rollcall::Action::no_microbatch); };
  };
  StageFunctions functions;
  functions.forward = [this, &spec](const StagePass& pass) {
    run_stage(spec.forward, pass.stage, pass.microbatch);
  };
  functions.backward = [this, &spec](const StagePass& pass) {
    if (pass.computation != Computation::backward_weight) {
      run_stage(spec.backward, pass.stage, pass.microbatch);
    }
    if (pass.computation != Computation::backward_input) {
      run_stage(spec.backward_weight, pass.stage, pass.microbatch);
    }
  };
  functions.unshard = run_for_stage(spec.unshard);
  functions.reshard = run_for_stage(spec.reshard);
  functions.reduce_grad = run_for_stage(spec.reduce_grad);
  return functions;
}

void Parallelism::run_stage(const Block& block, std::int32_t stage, std::int32_t microbatch) {
  if (block.begin == block.end) {
    return;
  }
  const ParallelObjects& objects = frame_.program().parallel;
  frame_.set(objects.stage, stage);
  frame_.set(objects.microbatch, microbatch);
  run_block(frame_, block);
}

void Parallelism::run(TableIndex object, ParallelVerb verb, Site site) {
  if (const auto pipeline = pipelines_.find(object); pipeline != pipelines_.end()) {
    return verb == ParallelVerb::eval ? pipeline->second->eval(site) : pipeline->second->step(site);
  }
  if (const auto ring = rings_.find(object); ring != rings_.end()) {
    return verb == ParallelVerb::forward ? ring->second.forward({}, site) : ring->second.backward({}, site);
  }
  const auto module = modules_.find(object);
  if (module == modules_.end()) {
    throw Error("NameError", fmt::format("name '{}' is not defined: rank {} does not belong to its group",
                                         frame_.program().objects[object].name, frame_.rank()));
  }
  switch (verb) {
    case ParallelVerb::parallelize:
      return module->second.parallelize(site);
    case ParallelVerb::forward:
      return module->second.forward(site);
    case ParallelVerb::backward:
      return module->second.backward(site);
    case ParallelVerb::step:
      return module->second.step(site);
    case ParallelVerb::eval:
      return;
  }
}

}  // namespace rollcall::scenario
