#include "scenarios/run/training.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "scenarios/run/model_kernels.h"
#include "scenarios/run/rank_frame.h"
#include "sim/base/error.h"
#include "sim/c10d/rank_context.h"
#include "sim/train/ddp.h"
#include "sim/train/fsdp.h"
#include "sim/train/zero.h"

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

Tensor gradient_like(const RankFrame& frame, const Tensor& parameter, const Shape& shape,
                     const ModelPass& pass) {
  const Tensor gradient = Tensor::ones(shape, parameter.dtype(), parameter.device());
  if (pass.value) {
    frame.set_elements(gradient, pass.value);
  }
  return gradient;
}

std::vector<Parameter*> pointers_to(std::vector<Parameter>& parameters) {
  std::vector<Parameter*> pointers;
  for (Parameter& parameter : parameters) {
    pointers.push_back(&parameter);
  }
  return pointers;
}

DdpOptions ddp_options(RankFrame& frame, const ObjectSpec& object, const ModelObject& spec) {
  DdpOptions options = spec.options;
  options.group = frame.group(object.group);
  options.name_parameters = frame.scenario().options.debug == sim::DebugLevel::detail;
  return options;
}

class DdpModel final : public TrainedObject {
 public:
  DdpModel(RankFrame& frame, const ObjectSpec& object, const ModelObject& spec)
      : frame_(frame),
        module_(module_of(spec.parameters, spec.buffers, this_rank().device)),
        kernels_(frame, spec.work, spec.parameters),
        ddp_(module_, ddp_options(frame, object, spec), frame.site_of(object)) {
    for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
      if (spec.parameters[i].requires_grad) {
        trainable_.push_back(i);
      }
    }
    if (spec.comm_hook) {
      ddp_.register_comm_hook(spec.comm_hook);
    }
  }

  void forward(const ModelPass& pass, Site site, const std::function<void()>& body) override {
    if (pass.grad_enabled) {
      note_unused(pass.unused);
    }
    ddp_.forward(
        [&] {
          body();
          kernels_.forward(0, kernels_.count());
          return ForwardOutputs{pass.unused};
        },
        {.grad_enabled = pass.grad_enabled}, site);
  }

  void backward(const ModelPass& pass, Site site) override {
    const std::vector<Parameter*>& parameters = ddp_.parameters();
    Tensor element;  // added to gradients that already exist
    for (auto index = static_cast<std::uint32_t>(parameters.size()); index-- > 0;) {
      if (std::ranges::find(pass.unused, index) != pass.unused.end() ||
          (unused_ && std::ranges::find(*unused_, index) != unused_->end())) {
        continue;
      }
      kernels_.backward(trainable_[index], trainable_[index] + 1);
      const Tensor& value = parameters[index]->value;
      if (!parameters[index]->grad) {
        ddp_.accumulate({index, gradient_like(frame_, value, value.shape(), pass)}, site);
        continue;
      }
      if (!element || element.dtype() != value.dtype()) {
        element = gradient_like(frame_, value, {1}, pass);
      }
      ddp_.accumulate({index, element}, site);
    }
    unused_.reset();
    ddp_.finish_backward(site);
  }

  std::shared_ptr<void> no_sync() override { return std::make_shared<DistributedDataParallel::NoSync>(ddp_); }
  std::vector<Parameter*> parameters() override { return pointers_to(module_.parameters); }
  Joinable* joinable() override { return &ddp_; }

 private:
  void note_unused(const std::vector<std::uint32_t>& unused) {
    if (!unused_) {
      unused_ = unused;
      return;
    }
    std::erase_if(*unused_, [&unused](std::uint32_t index) {
      return std::ranges::find(unused, index) == unused.end();
    });
  }

  RankFrame& frame_;
  Module module_;
  ModelKernels kernels_;
  DistributedDataParallel ddp_;
  // Parameters that no forward pass since the last backward pass has used: they get no gradient. Null: there was none.
  std::optional<std::vector<std::uint32_t>> unused_;
  std::vector<std::size_t> trainable_;  // of the kernels' parameters, as DDP counts them
};

// Kind "dp": only the program's own statements run.
class LocalModel final : public TrainedObject {
 public:
  void forward(const ModelPass& /*pass*/, Site /*site*/, const std::function<void()>& body) override {
    body();
  }
  void backward(const ModelPass& /*pass*/, Site /*site*/) override {}
  std::vector<Parameter*> parameters() override { return {}; }
  Joinable* joinable() override { refuse_join("DataParallel"); }
};

class FsdpModel final : public TrainedObject {
 public:
  FsdpModel(RankFrame& frame, const ShardedObject& spec, FsdpOptions options)
      : frame_(frame),
        fsdp_(modules_of(spec), std::move(options)),
        kernels_(frame, spec.work, parameters_of(spec), spec.options.mixed_precision.param_dtype) {
    for (const std::vector<ParameterSpec>& unit : spec.units) {
      starts_.push_back(starts_.back() + unit.size());
    }
  }

  void forward(const ModelPass& /*pass*/, Site site, const std::function<void()>& body) override {
    fsdp_.forward(
        [&](std::size_t unit) {
          if (unit == 0) {
            body();
          }
          kernels_.forward(starts_[unit], starts_[unit + 1]);
        },
        site);
  }

  void backward(const ModelPass& pass, Site site) override {
    fsdp_.backward(
        [&](std::size_t unit, const Shape& shape) {
          kernels_.backward(starts_[unit], starts_[unit + 1]);
          return gradient_like(frame_, fsdp_.shards()[unit].value, shape, pass);
        },
        site);
  }

  std::shared_ptr<void> no_sync() override {
    return std::make_shared<FullyShardedDataParallel::NoSync>(fsdp_);
  }
  void clip_grad_norm(const action::ClipGradNorm& clip, Site site) override {
    fsdp_.clip_grad_norm(clip.max_norm, clip.norm_type, site);
  }
  std::vector<Parameter*> parameters() override { return pointers_to(fsdp_.shards()); }
  bool is_sharded() const override { return true; }
  void state_dict(Site site) override { fsdp_.gather_state(site); }
  Joinable* joinable() override { refuse_join("FullyShardedDataParallel"); }

 private:
  static std::vector<Module> modules_of(const ShardedObject& spec) {
    std::vector<Module> units;
    for (const std::vector<ParameterSpec>& unit : spec.units) {
      units.push_back(module_of(unit, {}, this_rank().device));
    }
    return units;
  }
  static std::vector<ParameterSpec> parameters_of(const ShardedObject& spec) {
    std::vector<ParameterSpec> parameters;
    for (const std::vector<ParameterSpec>& unit : spec.units) {
      parameters.insert(parameters.end(), unit.begin(), unit.end());
    }
    return parameters;
  }

  RankFrame& frame_;
  FullyShardedDataParallel fsdp_;
  ModelKernels kernels_;
  std::vector<std::size_t> starts_{0};  // of each unit's parameters among the kernels', and their end
};

class LocalOptimizer final : public TrainedObject {
 public:
  explicit LocalOptimizer(std::unique_ptr<Optimizer> optimizer) : optimizer_(std::move(optimizer)) {}

  void step(Site /*site*/) override { optimizer_->step(); }

 private:
  std::unique_ptr<Optimizer> optimizer_;
};

class ZeroOptimizer final : public TrainedObject {
 public:
  ZeroOptimizer(std::vector<Parameter*> parameters, const OptimizerOptions& optimizer, ZeroOptions options)
      : zero_(std::move(parameters), optimizer, std::move(options)) {}

  void step(Site site) override { zero_.step(site); }
  void consolidate(std::int64_t to, Site site) override {
    const Rank ranks = zero_.join_process_group().size();
    if (to < 0 || to >= ranks) {
      throw ValueError(
          fmt::format("consolidate_state_dict(to={}): the group has ranks 0 to {}", to, ranks - 1));
    }
    zero_.consolidate_state_dict(static_cast<Rank>(to), site);
  }
  void state_dict(Site /*site*/) override { zero_.state_dict(); }
  Joinable* joinable() override { return &zero_; }

 private:
  ZeroRedundancyOptimizer zero_;
};

using Made = std::unique_ptr<TrainedObject>;

Made make_trained(RankFrame& frame, const ObjectSpec& object, const ModelObject& spec) {
  return frame.group(object.group).is_member() ? std::make_unique<DdpModel>(frame, object, spec) : nullptr;
}

Made make_trained(RankFrame& /*frame*/, const ObjectSpec& /*object*/, const DataParallelObject& /*spec*/) {
  return std::make_unique<LocalModel>();
}

Made make_trained(RankFrame& frame, const ObjectSpec& object, const ShardedObject& spec) {
  FsdpOptions options = spec.options;
  options.group = frame.group(object.group);
  options.replicate_group = spec.replicate_group ? frame.group(*spec.replicate_group) : ProcessGroup();
  const bool is_member =
      options.group.is_member() && (!spec.replicate_group || options.replicate_group.is_member());
  return is_member ? std::make_unique<FsdpModel>(frame, spec, std::move(options)) : nullptr;
}

Made make_trained(RankFrame& frame, const ObjectSpec& object, const FullyShardedObject& spec) {
  return make_fully_sharded(frame, object, spec);
}

Made make_trained(RankFrame& frame, const ObjectSpec& /*object*/, const OptimizerObject& spec) {
  TrainedObject* const model = frame.find_trained(spec.model);
  if (model == nullptr) {
    return nullptr;  // another group's
  }
  std::vector<Parameter*> parameters = model->parameters();
  std::erase_if(parameters, [](const Parameter* parameter) { return !parameter->requires_grad; });
  if (spec.is_zero) {
    ZeroOptions options = spec.zero;
    options.group = model->joinable()->join_process_group();
    return std::make_unique<ZeroOptimizer>(std::move(parameters), spec.options, std::move(options));
  }
  return std::make_unique<LocalOptimizer>(make_optimizer(std::move(parameters), spec.options));
}

// Objects of other kinds.
Made make_trained(RankFrame& /*frame*/, const ObjectSpec& /*object*/, const auto& /*spec*/) {
  return nullptr;
}

}  // namespace

std::unique_ptr<TrainedObject> make_trained_object(RankFrame& frame, const ObjectSpec& object) {
  return std::visit([&](const auto& kind) { return make_trained(frame, object, kind); }, object.kind);
}

void refuse_join(const char* type) {
  throw Error("AttributeError", fmt::format("'{}' object has no attribute 'join_hook'", type));
}

}  // namespace rollcall::scenario
