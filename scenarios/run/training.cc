#include "scenarios/run/training.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "scenarios/run/rank_frame.h"
#include "sim/base/error.h"
#include "sim/c10d/rank_context.h"

namespace rollcall::scenario {
namespace {

Tensor tensor_of(const ParameterSpec& spec, Device device) {
  return Tensor::full(spec.shape, spec.value, spec.dtype, device);
}

Module module_of(const std::vector<ParameterSpec>& parameters, const std::vector<ParameterSpec>& buffers,
                 Device device) {
  Module module;
  module.parameters.reserve(parameters.size());
  for (const ParameterSpec& parameter : parameters) {
    module.parameters.push_back({.name = parameter.name,
                                 .value = tensor_of(parameter, device),
                                 .requires_grad = parameter.requires_grad});
  }
  for (const ParameterSpec& buffer : buffers) {
    module.buffers.push_back({buffer.name, tensor_of(buffer, device)});
  }
  return module;
}

CommHook hook_of(CommHookName name) {
  switch (name) {
    case CommHookName::allreduce:
      return allreduce_hook;
    case CommHookName::fp16_compress:
      return fp16_compress_hook;
    case CommHookName::bf16_compress:
      return bf16_compress_hook;
    case CommHookName::ddp_default:
      break;
  }
  return nullptr;
}

}  // namespace

Training::Training(RankFrame& frame) : frame_(frame) {
  const TrainingObjects& objects = frame.program().training;
  for (TableIndex object = 0; object < frame.program().objects.size(); ++object) {
    if (const auto model = objects.models.find(object); model != objects.models.end()) {
      construct(object, model->second);
    }
    if (const auto sharded = objects.sharded.find(object); sharded != objects.sharded.end()) {
      construct(object, sharded->second);
    }
    if (const auto sharded = objects.fully_sharded.find(object); sharded != objects.fully_sharded.end()) {
      construct(object, sharded->second);
    }
    if (const auto optimizer = objects.optimizers.find(object); optimizer != objects.optimizers.end()) {
      construct(object, optimizer->second);
    }
  }
}

void Training::construct(TableIndex object, const ModelObject& spec) {
  const ProcessGroup group = frame_.group(spec.group);
  if (!group.is_member()) {
    return;
  }
  Model& model =
      models_
          .try_emplace(object, Model{.module = module_of(spec.parameters, spec.buffers, this_rank().device),
                                     .kernels = ModelKernels(frame_, spec.work, spec.parameters)})
          .first->second;
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    if (spec.parameters[i].requires_grad) {
      model.trainable.push_back(i);
    }
  }
  model.ddp = std::make_unique<DistributedDataParallel>(
      model.module,
      DdpOptions{.group = group,
                 .broadcast_buffers = spec.broadcast_buffers,
                 .forward_sync_buffers = spec.forward_sync_buffers,
                 .bucket_cap_bytes = spec.bucket_cap_bytes,
                 .first_bucket_bytes = spec.first_bucket_bytes,
                 .bucket_cap_list = spec.bucket_cap_list,
                 .find_unused_parameters = spec.find_unused_parameters,
                 .skip_all_reduce_unused_params = spec.skip_all_reduce_unused_params,
                 .gradient_as_bucket_view = spec.gradient_as_bucket_view,
                 .static_graph = spec.static_graph,
                 .name_parameters = frame_.scenario().options.debug == sim::DebugLevel::detail,
                 .name = spec.name},
      Site{frame_.program().file.c_str(), spec.line, spec.column});
  if (CommHook hook = hook_of(spec.comm_hook)) {
    model.ddp->register_comm_hook(std::move(hook));
  }
}

void Training::construct(TableIndex object, const ShardedObject& spec) {
  const ProcessGroup group = frame_.group(spec.group);
  const ProcessGroup replicas = spec.is_hybrid ? frame_.group(spec.replicate_group) : ProcessGroup();
  if (!group.is_member() || (replicas && !replicas.is_member())) {
    return;
  }
  std::vector<Module> units;
  std::vector<ParameterSpec> parameters;
  std::vector<std::size_t> starts{0};
  for (const std::vector<ParameterSpec>& unit : spec.units) {
    units.push_back(module_of(unit, {}, this_rank().device));
    parameters.insert(parameters.end(), unit.begin(), unit.end());
    starts.push_back(parameters.size());
  }
  const FsdpOptions options{.group = group,
                            .replicate_group = replicas,
                            .strategy = spec.strategy,
                            .mixed_precision = spec.mixed_precision,
                            .name = spec.name};
  sharded_.try_emplace(object, Sharded{.fsdp = std::make_unique<FullyShardedDataParallel>(units, options),
                                       .kernels = ModelKernels(frame_, spec.work, parameters,
                                                               spec.mixed_precision.param_dtype),
                                       .starts = std::move(starts)});
}

void Training::construct(TableIndex object, const FullyShardedObject& spec) {
  const bool is_member = frame_.group(spec.group).is_member() &&
                         (!spec.is_hybrid || frame_.group(spec.replicate_group).is_member());
  if (is_member) {
    fully_sharded_[object] = std::make_unique<FullySharded>(frame_, spec);
  }
}

void Training::construct(TableIndex object, const OptimizerObject& spec) {
  if (FullySharded* const model = fully_sharded(spec.model)) {
    optimizers_[object].local = make_optimizer(model->module().parameters(), spec.options);
    return;
  }
  if (FullyShardedDataParallel* const model = sharded(spec.model)) {
    std::vector<Parameter*> shards;
    for (Parameter& shard : model->shards()) {
      shards.push_back(&shard);
    }
    optimizers_[object].local = make_optimizer(std::move(shards), spec.options);
    return;
  }
  const auto model = models_.find(spec.model);
  if (model == models_.end()) {
    return;  // another group's
  }
  DistributedDataParallel& ddp = *model->second.ddp;
  OneOptimizer& optimizer = optimizers_[object];
  if (spec.is_zero) {
    optimizer.zero = std::make_unique<ZeroRedundancyOptimizer>(
        ddp.parameters(), spec.options,
        ZeroOptions{.group = ddp.join_process_group(),
                    .parameters_as_bucket_view = spec.parameters_as_bucket_view,
                    .name = spec.name});
  } else {
    optimizer.local = make_optimizer(ddp.parameters(), spec.options);
  }
}

void Training::refuse(TableIndex object) const {
  throw Error("NameError", fmt::format("name '{}' is not defined: rank {} does not belong to its group",
                                       frame_.program().objects[object].name, frame_.rank()));
}

DistributedDataParallel& Training::model(TableIndex object) {
  const auto found = models_.find(object);
  if (found == models_.end()) {
    refuse(object);
  }
  return *found->second.ddp;
}

FullyShardedDataParallel* Training::sharded(TableIndex object) const {
  const auto found = sharded_.find(object);
  return found == sharded_.end() ? nullptr : found->second.fsdp.get();
}

FullySharded* Training::fully_sharded(TableIndex object) const {
  const auto found = fully_sharded_.find(object);
  return found == fully_sharded_.end() ? nullptr : found->second.get();
}

FullySharded& Training::require_fully_sharded(TableIndex object) const {
  FullySharded* const model = fully_sharded(object);
  if (model == nullptr) {
    refuse(object);
  }
  return *model;
}

void Training::call_sharded(const action::ShardingCall& call, Site site) {
  require_fully_sharded(call.object).call(call, site);
}

void Training::clip_grad_norm(const action::ClipGradNorm& clip, Site site) {
  if (FullyShardedDataParallel* const sharded_model = sharded(clip.object)) {
    sharded_model->clip_grad_norm(clip.max_norm, clip.norm_type, site);
    return;
  }
  require_fully_sharded(clip.object).module().clip_grad_norm(clip.max_norm, clip.norm_type, site);
}

std::shared_ptr<void> Training::no_sync(TableIndex object) {
  if (FullySharded* const sharded_model = fully_sharded(object)) {
    return std::make_shared<FullyShardedModule::NoSync>(sharded_model->module());
  }
  if (FullyShardedDataParallel* const model = sharded(object)) {
    return std::make_shared<FullyShardedDataParallel::NoSync>(*model);
  }
  return std::make_shared<DistributedDataParallel::NoSync>(model(object));
}

bool Training::is_local(TableIndex object) const {
  return frame_.program().training.data_parallel.contains(object);
}

void Training::forward(TableIndex object, const ModelPass& pass, Site site,
                       const std::function<void()>& module_forward) {
  if (is_local(object)) {
    module_forward();
    return;
  }
  if (FullySharded* const sharded_model = fully_sharded(object)) {
    sharded_model->forward(pass, site, module_forward);
    return;
  }
  if (const auto found = sharded_.find(object); found != sharded_.end()) {
    const Sharded& model = found->second;
    model.fsdp->forward(
        [&](std::size_t unit) {
          if (unit == 0) {
            module_forward();
          }
          model.kernels.forward(model.starts[unit], model.starts[unit + 1]);
        },
        site);
    return;
  }
  model(object).forward(
      [&] {
        module_forward();
        const ModelKernels& kernels = models_.at(object).kernels;
        kernels.forward(0, kernels.count());
        return ForwardOutputs{pass.unused};
      },
      {.grad_enabled = pass.grad_enabled}, site);
}

void Training::backward(TableIndex object, const ModelPass& pass, Site site) {
  if (is_local(object)) {
    return;
  }
  if (FullySharded* const sharded_model = fully_sharded(object)) {
    sharded_model->backward(pass, site);
    return;
  }
  if (const auto found = sharded_.find(object); found != sharded_.end()) {
    const Sharded& model = found->second;
    model.fsdp->backward(
        [&](std::size_t unit, const Shape& shape) {
          model.kernels.backward(model.starts[unit], model.starts[unit + 1]);
          return gradient_like(model.fsdp->shards()[unit].value, shape, pass);
        },
        site);
    return;
  }
  DistributedDataParallel& ddp = model(object);
  const std::vector<Parameter*>& parameters = ddp.parameters();
  const Model& own = models_.at(object);
  Tensor element;  // added to gradients that already exist
  for (auto index = static_cast<std::uint32_t>(parameters.size()); index-- > 0;) {
    if (std::ranges::find(pass.unused, index) != pass.unused.end()) {
      continue;
    }
    own.kernels.backward(own.trainable[index], own.trainable[index] + 1);
    const Tensor& value = parameters[index]->value;
    if (!parameters[index]->grad) {
      ddp.accumulate({index, gradient_like(value, value.shape(), pass)}, site);
      continue;
    }
    if (!element || element.dtype() != value.dtype()) {
      element = gradient_like(value, {1}, pass);
    }
    ddp.accumulate({index, element}, site);
  }
  ddp.finish_backward(site);
}

Tensor Training::gradient_like(const Tensor& parameter, const Shape& shape, const ModelPass& pass) const {
  const Tensor gradient = Tensor::ones(shape, parameter.dtype(), parameter.device());
  if (pass.value) {
    frame_.set_elements(gradient, pass.value);
  }
  return gradient;
}

Training::OneOptimizer& Training::optimizer(TableIndex object) {
  const auto found = optimizers_.find(object);
  if (found == optimizers_.end()) {
    refuse(object);
  }
  return found->second;
}

void Training::step(TableIndex object, Site site) {
  const OneOptimizer& one = optimizer(object);
  if (one.zero != nullptr) {
    one.zero->step(site);
  } else {
    one.local->step();
  }
}

void Training::state_dict(TableIndex object, Site site) {
  if (FullyShardedDataParallel* const sharded_model = sharded(object)) {
    sharded_model->gather_state(site);
  } else if (FullySharded* const units = fully_sharded(object)) {
    units->module().full_tensors(site);
  } else if (is_local(object)) {
    return;
  } else if (!frame_.program().training.optimizers.contains(object)) {
    model(object);  // the rank must have one
  } else if (const OneOptimizer& one = optimizer(object); one.zero != nullptr) {
    one.zero->state_dict();
  }
}

void Training::add_state(TableIndex object, checkpoint::StateDict& state) {
  std::size_t count = 0;
  const auto add = [&](const Parameter& parameter, bool is_shard) {
    const std::string& name = frame_.program().objects[object].name;
    state.push_back({fmt::format("{}.{}", name, count++), parameter.value, is_shard});
  };
  if (FullyShardedDataParallel* const sharded_model = sharded(object)) {
    for (const Parameter& shard : sharded_model->shards()) {
      add(shard, true);
    }
  } else if (FullySharded* const units = fully_sharded(object)) {
    for (const Parameter* const parameter : units->module().parameters()) {
      add(*parameter, true);
    }
  } else {
    for (const Parameter& parameter : model(object).module().parameters) {
      add(parameter, false);
    }
  }
}

void Training::consolidate(TableIndex object, std::int64_t to, Site site) {
  ZeroRedundancyOptimizer& zero = *optimizer(object).zero;
  const Rank ranks = zero.join_process_group().size();
  if (to < 0 || to >= ranks) {
    throw ValueError(
        fmt::format("consolidate_state_dict(to={}): the group has ranks 0 to {}", to, ranks - 1));
  }
  zero.consolidate_state_dict(static_cast<Rank>(to), site);
}

void Training::zero_grad(TableIndex object, bool set_to_none) {
  const auto optimizer = frame_.program().training.optimizers.find(object);
  const bool is_optimizer = optimizer != frame_.program().training.optimizers.end();
  const TableIndex owner = is_optimizer ? optimizer->second.model : object;
  if (is_local(owner)) {
    return;
  }
  if (FullySharded* const sharded_model = fully_sharded(owner)) {
    for (Parameter* const parameter : sharded_model->module().parameters()) {
      rollcall::zero_grad(*parameter, set_to_none);
    }
    return;
  }
  if (FullyShardedDataParallel* const sharded_model = sharded(owner)) {
    for (Parameter& shard : sharded_model->shards()) {
      rollcall::zero_grad(shard, set_to_none);
    }
    return;
  }
  rollcall::zero_grad(model(owner).module(), set_to_none);
}

Joinable* Training::joinable(TableIndex object) {
  if (is_local(object)) {
    throw Error("AttributeError", "'DataParallel' object has no attribute 'join_hook'");
  }
  if (sharded(object) != nullptr) {
    throw Error("AttributeError", "'FullyShardedDataParallel' object has no attribute 'join_hook'");
  }
  if (fully_sharded(object) != nullptr) {
    throw Error("AttributeError", "'FSDPModule' object has no attribute 'join_hook'");
  }
  if (const auto found = models_.find(object); found != models_.end()) {
    return found->second.ddp.get();
  }
  if (const auto found = optimizers_.find(object); found != optimizers_.end()) {
    return found->second.zero.get();
  }
  return nullptr;
}

}  // namespace rollcall::scenario
