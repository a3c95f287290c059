#include "sim/train/fully_shard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"
#include "sim/torch/torch_traits.h"
#include "sim/train/flat.h"
#include "sim/train/grad_norm.h"

namespace rollcall {
namespace {

using Reshards = FsdpParamGroup::ReshardAfterForward;

// _fsdp_init.py, _get_post_forward_mesh_info.
void check_reshard_size(Rank size, Rank shard_size) {
  if (size < 1 || size > shard_size || shard_size % size != 0) {
    throw ValueError(fmt::format(
        "If passing reshard_after_forward as an int, it should be a factor of {}, not {}", shard_size, size));
  }
}

}  // namespace

FullyShardedModule::FullyShardedModule(const FsdpUnit& root, FullyShardOptions options, Site site)
    : mesh_{options.shard_group ? options.shard_group : world(), options.replicate_group} {
  if (!this_rank().torch->has_fully_shard) {
    throw Error("ImportError", "cannot import name 'fully_shard' from 'torch.distributed.fsdp'");
  }
  if (options.name.empty()) {
    options.name = "model";
  }
  add_unit(root, options, site);
}

void FullyShardedModule::add_unit(const FsdpUnit& unit, const FullyShardOptions& options, Site site) {
  const std::size_t index = units_.size();
  Unit& added = units_.emplace_back();
  added.name = unit.name;
  added.before = std::min(unit.before, unit.parameters.size());
  const auto place = [&](std::size_t parameter) {
    return Place{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(parameter)};
  };
  for (std::size_t i = 0; i < added.before; ++i) {
    order_.push_back(place(i));
  }
  for (const FsdpUnit& inner : unit.units) {  // fully_shard is called on these first
    add_unit(inner, options, site);
  }
  for (std::size_t i = added.before; i < unit.parameters.size(); ++i) {
    order_.push_back(place(i));
  }
  added.end = units_.size();
  const ReshardAfterForward reshard = unit.reshard_after_forward.value_or(options.reshard_after_forward);
  added.reshards_by_default = reshard.kind == ReshardAfterForward::Kind::by_default;
  const PostForward after = post_forward_of(index, reshard, site);
  if (!unit.parameters.empty()) {
    added.group = std::make_unique<FsdpParamGroup>(unit.name, options.name, unit.parameters, mesh_,
                                                   options.mp_policy, context_);
    added.group->reshard_after_forward = after.reshards;
    added.group->post_forward_group = after.group;
  }
}

// Each call of fully_shard with a size makes a mesh of its own, and so groups of its own, even without parameters.
FullyShardedModule::PostForward FullyShardedModule::post_forward_of(std::size_t unit,
                                                                    ReshardAfterForward reshard,
                                                                    Site site) const {
  using Kind = ReshardAfterForward::Kind;
  if (reshard.kind != Kind::to_size) {
    return {reshard.kind == Kind::not_at_all ? Reshards::no : Reshards::yes, {}};
  }
  const Rank shard_size = mesh_.shard.size();
  check_reshard_size(reshard.size, shard_size);
  if (reshard.size == 1 || reshard.size == shard_size) {
    return {reshard.size == 1 ? Reshards::no : Reshards::yes, {}};
  }
  const Rank ranks = shard_size * (mesh_.replicate ? mesh_.replicate.size() : 1);
  if (ranks != world().size()) {
    throw NotImplementedError(
        "reshard_after_forward as an int makes a new DeviceMesh, which needs a mesh of all ranks");
  }
  const std::string name = fmt::format("reshard{}_", unit);
  const DeviceMesh mesh =
      init_device_mesh({{ranks / reshard.size, reshard.size}, {name + "replicate", name + "shard"}}, site);
  return {Reshards::to_smaller_group, mesh.get_group(name + "shard")};
}

// _fsdp_state.py, _lazy_init: the first unit to run forward is the root.
void FullyShardedModule::lazy_init(std::size_t root) {
  if (units_[root].is_root) {
    return;
  }
  units_[root].is_root = true;
  for (std::size_t inner = root + 1; inner < units_[root].end; ++inner) {
    if (units_[inner].is_root) {
      throw RuntimeError(
          fmt::format("FSDP state has already been lazily initialized for {}\nFSDP requires running forward "
                      "through the root module first",
                      units_[inner].name));
    }
    units_[inner].is_root = false;
  }
  const bool is_kept = units_[root].reshards_by_default || this_rank().torch->fully_shard_keeps_root;
  if (is_kept && units_[root].group) {
    units_[root].group->reshard_after_forward = Reshards::no;
  }
  context_.lazy_init();
  for (std::size_t unit = root; unit < units_[root].end; ++unit) {
    if (units_[unit].group) {
      units_[unit].group->lazy_init();
    }
  }
}

void FullyShardedModule::pre_forward(std::size_t unit, Site site) {
  Unit& self = units_[unit];
  lazy_init(unit);
  if (!forward_root_) {
    forward_root_ = unit;
    Event before;  // the optimizer has to finish before anything is gathered
    before.record();
    context_.wait_for_all_gathers(before);
  }
  if (self.group) {
    self.group->pre_forward(site);
  }
  prefetch(self.forward_prefetch, FsdpParamGroup::TrainingState::forward, site);
}

void FullyShardedModule::prefetch(const std::vector<std::size_t>& targets, FsdpParamGroup::TrainingState pass,
                                  Site site) {
  for (const std::size_t target : targets) {
    if (units_[target].group) {
      units_[target].group->prefetch(pass, site);
    }
  }
}

void FullyShardedModule::post_forward(std::size_t unit) {
  if (units_[unit].group) {
    units_[unit].group->post_forward();
  }
  if (forward_root_ == unit) {
    context_.release_gathered();
    forward_root_.reset();
  }
}

void FullyShardedModule::pre_backward(std::size_t unit, Site site) {
  Unit& self = units_[unit];
  is_backward_running_ = true;
  if (self.group) {
    self.group->pre_backward(self.backward_prefetch.empty(), site);
  }
  prefetch(self.backward_prefetch, FsdpParamGroup::TrainingState::pre_backward, site);
}

void FullyShardedModule::accumulate(std::size_t unit, std::size_t parameter, const Tensor& gradient) {
  params(unit).at(parameter).accumulate(gradient);
}

void FullyShardedModule::post_backward(std::size_t unit, Site site) {
  if (units_[unit].group) {
    units_[unit].group->post_backward(site);
  }
}

// _root_post_backward_final_callback: runs post_backward for units whose inputs needed no gradient.
void FullyShardedModule::finish_backward(Site site) {
  using TrainingState = FsdpParamGroup::TrainingState;
  if (!std::exchange(is_backward_running_, false)) {
    return;
  }
  forward_root_.reset();
  for (Unit& unit : units_) {
    if (!unit.group) {
      continue;
    }
    FsdpParamGroup& group = *unit.group;
    if (group.training_state != TrainingState::post_backward) {
      group.post_backward(site);
    }
    group.training_state = TrainingState::idle;
    if (is_last_backward_) {
      group.finalize_backward();
    }
  }
  if (is_last_backward_) {
    context_.post_forward_order.clear();
    wait_once(context_.reduced_before);
  }
  for (Unit& unit : units_) {
    if (unit.group) {
      unit.group->settle_gradients();
    }
  }
}

struct FullyShardedModule::Forward {
  const std::function<void(std::size_t)>& layers;
  const FsdpForwardOptions& options;
  Site site;
  bool requires_grad;  // of the next layer's input
};

void FullyShardedModule::forward(const std::function<void(std::size_t)>& layers,
                                 const FsdpForwardOptions& options, Site site) {
  steps_.clear();
  unused_ = options.unused;
  Forward forward{layers, options, site, options.grad_enabled && options.input_requires_grad};
  run_unit(0, forward);
}

void FullyShardedModule::run_unit(std::size_t index, Forward& forward) {
  if (std::ranges::find(forward.options.skipped, index) != forward.options.skipped.end()) {
    return;
  }
  const Unit& unit = units_[index];
  const auto self = static_cast<std::uint32_t>(index);
  pre_forward(index, forward.site);
  if (unit.group && forward.requires_grad) {
    steps_.push_back({Step::Kind::input, self});
  }
  const std::size_t count = unit.group ? unit.group->params().size() : 0;
  if (unit.before > 0) {
    compute(index, 0, unit.before, forward);
  }
  for (std::size_t inner = index + 1; inner < unit.end; inner = units_[inner].end) {
    run_unit(inner, forward);
  }
  if (unit.before < count || unit.end == index + 1) {
    compute(index, unit.before, count, forward);
  }
  post_forward(index);
  if (forward.requires_grad) {
    steps_.push_back({Step::Kind::output, self});
  }
}

bool FullyShardedModule::is_used(std::size_t unit, std::size_t parameter) const {
  return std::ranges::find(unused_, std::pair(unit, parameter)) == unused_.end();
}

void FullyShardedModule::compute(std::size_t index, std::size_t first, std::size_t end, Forward& forward) {
  if (forward.layers) {
    forward.layers(index);
  }
  for (std::size_t i = first; i < end && forward.options.grad_enabled; ++i) {
    forward.requires_grad =
        forward.requires_grad || (units_[index].group->params()[i].requires_grad() && is_used(index, i));
  }
  if (forward.requires_grad) {
    steps_.push_back({Step::Kind::compute, static_cast<std::uint32_t>(index),
                      static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end)});
  }
}

void FullyShardedModule::backward(const GradientOf& gradient, Site site) {
  for (std::size_t at = steps_.size(); at-- > 0;) {
    const Step step = steps_[at];
    if (step.kind == Step::Kind::input) {
      post_backward(step.unit, site);
    } else if (step.kind == Step::Kind::compute) {
      for (std::size_t i = step.end; i-- > step.first;) {
        if (params(step.unit)[i].requires_grad() && is_used(step.unit, i)) {
          if (const Tensor value = gradient(step.unit, i)) {
            accumulate(step.unit, i, value);
          }
        }
      }
    } else {  // units that end with the same tensor hooked it in the order of their ends
      std::size_t first = at;
      while (first > 0 && steps_[first - 1].kind == Step::Kind::output) {
        --first;
      }
      for (std::size_t output = first; output <= at; ++output) {
        pre_backward(steps_[output].unit, site);
      }
      at = first;
    }
  }
  finish_backward(site);
}

// torch/distributed/tensor: full_tensor() gathers the padded rows, along the shard dimension of the mesh only.
TensorList FullyShardedModule::full_tensors(Site site) {
  each_group(0, [](FsdpParamGroup& group) { group.to_sharded(); });
  TensorList whole;
  const Rank ranks = mesh_.shard.size();
  for (const Place place : order_) {
    const FsdpParam& param = params(place.unit)[place.parameter];
    const Tensor mine = param.padded_rows();
    Tensor gathered = mine;
    if (ranks > 1) {
      gathered = mine.new_zeros({mine.numel() * ranks});
      const Scope scope("DTensor.full_tensor", "full_tensor " + param.sharded.name);
      all_gather_into_tensor(gathered, mine, {.group = mesh_.shard}, site);
    }
    whole.push_back(slice(gathered, 0, param.shape()));
  }
  return whole;
}

// torch/nn/utils/clip_grad.py on DTensors: the norms of all gradients are stacked, and the stack is reduced. A norm
// of infinity stays a partial maximum until the end, which is one number.
double FullyShardedModule::clip_grad_norm(double max_norm, double norm_type, Site site) {
  check_norm_type(norm_type);
  const bool is_max = std::isinf(norm_type);
  TensorList gradients;
  std::vector<double> norms;  // to the power of norm_type
  for (const Parameter* const parameter : parameters()) {
    if (parameter->grad) {
      gradients.push_back(parameter->grad);
      norms.push_back(norm_power(parameter->grad, norm_type));
    }
  }
  if (gradients.empty()) {
    return 0;
  }
  if (is_max) {
    norms = {*std::ranges::max_element(norms)};
  }
  const Tensor stack = Tensor::of(norms, gradients.front().dtype(), gradients.front().device());
  if (mesh_.shard.size() > 1) {
    const Scope scope("DTensor.clip_grad_norm_", "clip_grad_norm_");
    all_reduce(stack, {.op = is_max ? ReduceOp::max : ReduceOp::sum, .group = mesh_.shard}, site);
  }
  double power = 0;
  for (const double part : stack.to_vector()) {
    power += part;
  }
  const double norm = norm_of_power(power, norm_type);
  scale_gradients(gradients, norm, max_norm);
  return norm;
}

template <typename F>
void FullyShardedModule::each_group(std::size_t unit, F&& f) {
  for (std::size_t inner = unit; inner < unit_at(unit).end; ++inner) {
    if (units_[inner].group) {
      f(*units_[inner].group);
    }
  }
}

const FullyShardedModule::Unit& FullyShardedModule::unit_at(std::size_t unit) const {
  if (unit >= units_.size()) {
    throw ValueError(fmt::format("there is no unit {}; the last is {}", unit, units_.size() - 1));
  }
  return units_[unit];
}

FsdpParamGroup& FullyShardedModule::group_at(std::size_t unit) const {
  if (!unit_at(unit).group) {
    throw ValueError(fmt::format("unit {} has no parameters of its own", unit));
  }
  return *units_[unit].group;
}

std::vector<FsdpParam>& FullyShardedModule::params(std::size_t unit) { return group_at(unit).params(); }

std::vector<Parameter*> FullyShardedModule::parameters() {
  std::vector<Parameter*> all;
  for (const Place place : order_) {
    all.push_back(&params(place.unit)[place.parameter].sharded);
  }
  return all;
}

Tensor FullyShardedModule::unsharded_param(std::size_t unit, std::size_t parameter) const {
  return group_at(unit).unsharded_param(parameter);
}

void FullyShardedModule::unshard(std::size_t unit, Site site) {
  if (unit_at(unit).group) {
    FsdpParamGroup& group = *units_[unit].group;
    group.lazy_init();
    group.unshard(site);
    group.wait_for_unshard();
  }
}

void FullyShardedModule::reshard(std::size_t unit) {
  if (unit_at(unit).group) {
    units_[unit].group->reshard();
  }
}

void FullyShardedModule::set_unshard_in_backward(std::size_t unit, bool unshards) {
  group_at(unit).unshard_in_backward = unshards;
}

void FullyShardedModule::set_gradient_divide_factor(std::size_t unit, double factor) {
  group_at(unit).gradient_divide_factor = factor;
}

void FullyShardedModule::set_force_sum_reduction_for_comms(std::size_t unit, bool only_sums) {
  group_at(unit).force_sum_reduction_for_comms = only_sums;
}

void FullyShardedModule::set_prefetch(std::size_t unit, std::vector<std::size_t> Unit::*list,
                                      std::vector<std::size_t> targets) {
  for (const std::size_t target : targets) {
    unit_at(target);
  }
  unit_at(unit);
  units_[unit].*list = std::move(targets);
}

void FullyShardedModule::set_modules_to_forward_prefetch(std::size_t unit, std::vector<std::size_t> targets) {
  set_prefetch(unit, &Unit::forward_prefetch, std::move(targets));
}

void FullyShardedModule::set_modules_to_backward_prefetch(std::size_t unit,
                                                          std::vector<std::size_t> targets) {
  set_prefetch(unit, &Unit::backward_prefetch, std::move(targets));
}

void FullyShardedModule::set_requires_gradient_sync(bool requires_sync, std::size_t unit) {
  each_group(unit, [&](FsdpParamGroup& group) {
    group.reduce_grads = requires_sync;
    group.all_reduce_grads = requires_sync;
  });
}

void FullyShardedModule::set_requires_all_reduce(bool requires_all_reduce, std::size_t unit) {
  each_group(unit, [&](FsdpParamGroup& group) { group.all_reduce_grads = requires_all_reduce; });
}

void FullyShardedModule::set_reshard_after_forward(bool reshards, std::size_t unit) {
  for (std::size_t inner = unit; inner < unit_at(unit).end; ++inner) {
    units_[inner].reshards_by_default = false;
  }
  each_group(unit, [&](FsdpParamGroup& group) {
    group.reshard_after_forward = reshards ? Reshards::yes : Reshards::no;
  });
}

void FullyShardedModule::set_reshard_after_backward(bool reshards, std::size_t unit) {
  each_group(unit, [&](FsdpParamGroup& group) { group.reshard_after_backward = reshards; });
}

void FullyShardedModule::set_reduce_scatter_unused_params(bool includes_unused, std::size_t unit) {
  each_group(unit, [&](FsdpParamGroup& group) { group.reduce_scatter_unused_params = includes_unused; });
}

}  // namespace rollcall
