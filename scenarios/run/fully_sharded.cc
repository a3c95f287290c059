// The training of a rank, the part about fully_shard.

#include <algorithm>

#include "scenarios/run/model_kernels.h"
#include "scenarios/run/rank_frame.h"
#include "scenarios/run/training.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/train/fully_shard.h"

namespace rollcall::scenario {
namespace {

FsdpUnit unit_of(const ShardedUnit& spec) {
  FsdpUnit unit{
      .name = spec.name, .before = spec.before, .reshard_after_forward = spec.reshard_after_forward};
  for (const ParameterSpec& parameter : spec.parameters) {
    unit.parameters.push_back(
        {.name = spec.name.empty() ? parameter.name : spec.name + "." + parameter.name,
         .value = Tensor::full(parameter.shape, parameter.value, parameter.dtype, this_rank().device),
         .requires_grad = parameter.requires_grad});
  }
  for (const ShardedUnit& inner : spec.units) {
    unit.units.push_back(unit_of(inner));
  }
  return unit;
}

FullyShardOptions sharding_options(RankFrame& frame, const ObjectSpec& object,
                                   const FullyShardedObject& spec) {
  FullyShardOptions options = spec.options;
  options.shard_group = frame.group(object.group);
  options.replicate_group = spec.replicate_group ? frame.group(*spec.replicate_group) : ProcessGroup();
  return options;
}

// A model of kind "fully_shard".
class FullySharded final : public TrainedObject {
 public:
  FullySharded(RankFrame& frame, const ObjectSpec& object, const FullyShardedObject& spec)
      : frame_(frame),
        module_(unit_of(spec.root), sharding_options(frame, object, spec), frame.site_of(object)) {
    collect_kernels(spec.root, spec.options.mp_policy);
    gradients_.resize(module_.unit_count());
    set_prefetches(spec);
    if (spec.reduce_scatter_unused_params) {
      module_.set_reduce_scatter_unused_params(true);
    }
  }

  // `body` runs once, when the first unit computes.
  void forward(const ModelPass& pass, Site site, const std::function<void()>& body) override {
    FsdpForwardOptions options{.grad_enabled = pass.grad_enabled};
    options.skipped.assign(pass.unused.begin(), pass.unused.end());
    bool is_first = true;
    std::vector<std::size_t> reached(kernels_.size());  // parameters of every unit that were used
    module_.forward(
        [&](std::size_t unit) {
          if (std::exchange(is_first, false)) {
            body();
          }
          const std::size_t first = reached[unit];
          reached[unit] = first < before_[unit] ? before_[unit] : kernels_[unit].count();
          kernels_[unit].forward(first, reached[unit]);
        },
        options, site);
  }

  void backward(const ModelPass& pass, Site site) override {
    module_.backward(
        [&](std::size_t unit, std::size_t parameter) {
          kernels_[unit].backward(parameter, parameter + 1);
          return gradient(unit, parameter, pass);
        },
        site);
  }

  std::shared_ptr<void> no_sync() override { return std::make_shared<FullyShardedModule::NoSync>(module_); }
  void clip_grad_norm(const action::ClipGradNorm& clip, Site site) override {
    module_.clip_grad_norm(clip.max_norm, clip.norm_type, site);
  }
  void call(const action::ShardingCall& call, Site site) override {
    using Method = action::ShardingCall::Method;
    switch (call.method) {
      case Method::unshard:
        return module_.unshard(call.unit, site);
      case Method::reshard:
        return module_.reshard(call.unit);
      case Method::set_requires_gradient_sync:
        return module_.set_requires_gradient_sync(call.value, call.unit);
      case Method::set_requires_all_reduce:
        return module_.set_requires_all_reduce(call.value, call.unit);
      case Method::set_reshard_after_forward:
        return module_.set_reshard_after_forward(call.value, call.unit);
      case Method::set_reshard_after_backward:
        return module_.set_reshard_after_backward(call.value, call.unit);
      case Method::set_is_last_backward:
        return module_.set_is_last_backward(call.value);
    }
  }

  std::vector<Parameter*> parameters() override { return module_.parameters(); }
  bool is_sharded() const override { return true; }
  void state_dict(Site site) override { module_.full_tensors(site); }
  Joinable* joinable() override { refuse_join("FSDPModule"); }

 private:
  Tensor gradient(std::size_t unit, std::size_t parameter, const ModelPass& pass) {
    const FsdpParam& param = module_.params(unit)[parameter];
    TensorList& kept = gradients_[unit];
    kept.resize(module_.params(unit).size());
    Tensor& gradient = kept[parameter];
    if (!gradient || gradient.storage()->references.load(std::memory_order_relaxed) > 1) {
      gradient = Tensor::zeros(param.shape(), param.compute_dtype(), param.sharded.value.device());
    }
    if (pass.value) {
      frame_.set_elements(gradient, pass.value);
    } else {
      gradient.fill_(1);
    }
    return gradient;
  }

  void collect_kernels(const ShardedUnit& unit, const MixedPrecisionPolicy& policy) {
    kernels_.emplace_back(frame_, unit.work, unit.parameters, policy.param_dtype);
    before_.push_back(unit.before);
    for (const ShardedUnit& inner : unit.units) {
      collect_kernels(inner, policy);
    }
  }

  // Every unit prefetches the next ones, in forward or in backward order, as in training scripts.
  void set_prefetches(const FullyShardedObject& spec) {
    const auto count = static_cast<std::int64_t>(module_.unit_count());
    for (std::int64_t unit = 1; unit < count; ++unit) {
      std::vector<std::size_t> next;
      std::vector<std::size_t> last;
      for (std::int64_t i = unit + 1; i <= unit + spec.forward_prefetch && i < count; ++i) {
        next.push_back(static_cast<std::size_t>(i));
      }
      for (std::int64_t i = unit - 1; i >= unit - spec.backward_prefetch && i > 0; --i) {
        last.push_back(static_cast<std::size_t>(i));
      }
      module_.set_modules_to_forward_prefetch(static_cast<std::size_t>(unit), std::move(next));
      module_.set_modules_to_backward_prefetch(static_cast<std::size_t>(unit), std::move(last));
    }
  }

  RankFrame& frame_;
  FullyShardedModule module_;
  std::vector<ModelKernels> kernels_;  // by unit
  std::vector<std::size_t> before_;    // by unit: how many parameters the first part of its forward uses
  std::vector<TensorList> gradients_;  // by unit, kept from one backward to the next
};

}  // namespace

std::unique_ptr<TrainedObject> make_fully_sharded(RankFrame& frame, const ObjectSpec& object,
                                                  const FullyShardedObject& spec) {
  const bool is_member = frame.group(object.group).is_member() &&
                         (!spec.replicate_group || frame.group(*spec.replicate_group).is_member());
  return is_member ? std::make_unique<FullySharded>(frame, object, spec) : nullptr;
}

}  // namespace rollcall::scenario
