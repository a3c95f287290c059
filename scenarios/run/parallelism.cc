#include "scenarios/run/parallelism.h"

#include <memory>
#include <utility>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/dtensor/parallel_module.h"
#include "sim/dtensor/ring_attention.h"
#include "sim/pipeline/schedule.h"

namespace rollcall::scenario {
namespace {

void run_stage(RankFrame& frame, const Block& block, std::int32_t stage, std::int32_t microbatch) {
  if (block.begin == block.end) {
    return;
  }
  frame.set(frame.program().stage, stage);
  frame.set(frame.program().microbatch, microbatch);
  run_block(frame, block);
}

StageFunctions functions_of(RankFrame& frame, const PipelineObject& spec) {
  const auto run_for_stage = [&frame](const Block& block) {
    return [&frame, &block](std::int32_t stage) {
      run_stage(frame, block, stage, rollcall::Action::no_microbatch);
    };
  };
  StageFunctions functions;
  functions.forward = [&frame, &spec](const StagePass& pass) {
    run_stage(frame, spec.forward, pass.stage, pass.microbatch);
  };
  functions.backward = [&frame, &spec](const StagePass& pass) {
    if (pass.computation != Computation::backward_weight) {
      run_stage(frame, spec.backward, pass.stage, pass.microbatch);
    }
    if (pass.computation != Computation::backward_input) {
      run_stage(frame, spec.backward_weight, pass.stage, pass.microbatch);
    }
  };
  functions.unshard = run_for_stage(spec.unshard);
  functions.reshard = run_for_stage(spec.reshard);
  functions.reduce_grad = run_for_stage(spec.reduce_grad);
  return functions;
}

ParallelObject make_parallel(RankFrame& frame, const ObjectSpec& object, const PipelineObject& spec) {
  PipelineOptions options = spec.options;
  options.group = frame.group(object.group);
  if (!options.group.is_member()) {
    return {};
  }
  const auto pipeline =
      std::make_shared<PipelineSchedule>(*spec.plan, std::move(options), functions_of(frame, spec));
  return [pipeline](ParallelVerb verb, Site site) {
    return verb == ParallelVerb::eval ? pipeline->eval(site) : pipeline->step(site);
  };
}

ParallelObject make_parallel(RankFrame& frame, const ObjectSpec& object, const RingObject& spec) {
  RingOptions options = spec.options;
  options.group = frame.group(object.group);
  if (!options.group.is_member()) {
    return {};
  }
  return [ring = RingAttention(options)](ParallelVerb verb, Site site) mutable {
    return verb == ParallelVerb::forward ? ring.forward({}, site) : ring.backward({}, site);
  };
}

ParallelObject make_parallel(RankFrame& frame, const ObjectSpec& object, const ParallelModuleObject& spec) {
  const ProcessGroup group = frame.group(object.group);
  if (!group.is_member()) {
    return {};
  }
  return [module = ParallelModule(group, spec.input, spec.layers)](ParallelVerb verb, Site site) mutable {
    switch (verb) {
      case ParallelVerb::parallelize:
        return module.parallelize(site);
      case ParallelVerb::forward:
        return module.forward(site);
      case ParallelVerb::backward:
        return module.backward(site);
      case ParallelVerb::step:
        return module.step(site);
      case ParallelVerb::eval:
        return;
    }
  };
}

// Objects of other kinds.
ParallelObject make_parallel(RankFrame& /*frame*/, const ObjectSpec& /*object*/, const auto& /*spec*/) {
  return {};
}

}  // namespace

ParallelObject make_parallel_object(RankFrame& frame, const ObjectSpec& object) {
  return std::visit([&](const auto& kind) { return make_parallel(frame, object, kind); }, object.kind);
}

}  // namespace rollcall::scenario
