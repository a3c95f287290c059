#include "sim/train/fsdp.h"

#include <algorithm>
#include <array>
#include <cmath>

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

constexpr std::size_t all_gathers_in_flight = 2;  // _limiter_utils.py

struct StrategyName {
  std::string_view name;
  ShardingStrategy strategy;
};
constexpr std::array<StrategyName, 5> strategy_names{{
    {"FULL_SHARD", ShardingStrategy::full_shard},
    {"SHARD_GRAD_OP", ShardingStrategy::shard_grad_op},
    {"NO_SHARD", ShardingStrategy::no_shard},
    {"HYBRID_SHARD", ShardingStrategy::hybrid_shard},
    {"_HYBRID_SHARD_ZERO2", ShardingStrategy::hybrid_shard_zero2},
}};

// The unit's parameters end to end, padded to a multiple of `ranks`. Zeros that are never read would make a uniform
// tensor dense, so its padding repeats its value.
Tensor flat_parameter(const Module& unit, Rank ranks) {
  TensorList values = unit.parameter_values();
  const Tensor flat = flatten(values);
  const std::int64_t padded = (flat.numel() + ranks - 1) / ranks * ranks;
  if (padded == flat.numel()) {
    return flat;
  }
  values.push_back(flat.storage()->form == Storage::Form::uniform
                       ? slice(flat, 0, {padded - flat.numel()})
                       : Tensor::zeros({padded - flat.numel()}, flat.dtype(), flat.device()));
  return flatten(values);
}

// A tensor that may be overwritten, because nothing else uses it.
Tensor own(Tensor tensor) {
  const bool is_shared = tensor.storage()->references.load(std::memory_order_relaxed) > 1;
  return is_shared ? tensor.clone() : tensor;
}

}  // namespace

std::optional<ShardingStrategy> parse_sharding_strategy(std::string_view name) {
  const auto* const found = std::ranges::find(strategy_names, name, &StrategyName::name);
  return found == strategy_names.end() ? std::nullopt : std::optional(found->strategy);
}

FullyShardedDataParallel::FullyShardedDataParallel(const std::vector<Module>& units, FsdpOptions options)
    : options_(std::move(options)), group_(options_.group ? options_.group : world()) {
  if (units.empty()) {
    throw ValueError("FullyShardedDataParallel got no units");
  }
  prefetch_ = options_.backward_prefetch.value_or(
      this_rank().torch->fsdp_prefetches ? BackwardPrefetch::pre : BackwardPrefetch::none);
  if (is_hybrid()) {
    if (!this_rank().torch->fsdp_has_hybrid) {
      throw Error("AttributeError", "HYBRID_SHARD");
    }
    if (!options_.group || !options_.replicate_group) {
      throw ValueError(
          "Manual wrapping with ShardingStrategy.HYBRID_SHARD requires explicit specification of process "
          "group or device_mesh.");
    }
    replicas_ = options_.replicate_group.size();
  }
  // This includes a hybrid strategy, whose replicas then train on their own: gradients are reduced over the group of
  // one only (_init_utils.py, _init_core_state).
  if (is_sharded() && group_.size() == 1 && this_rank().torch->fsdp_alone_is_unsharded) {
    options_.strategy = ShardingStrategy::no_shard;  // and torch warns
  }
  const std::string of = options_.name.empty() ? "" : " of " + options_.name;
  gather_pairing_ = "fsdp.all_gather" + of;
  reduce_pairing_ = "fsdp.reduce" + of;
  for (const Module& unit : units) {
    const bool is_root = units_.empty();
    units_.emplace_back();
    if (unit.parameters.empty()) {
      if (!is_root) {
        throw ValueError("FullyShardedDataParallel got a unit without parameters");
      }
      shards_.push_back({.name = "unit0", .value = Tensor::zeros({0}), .requires_grad = false});
      continue;
    }
    for (const Parameter& parameter : unit.parameters) {
      require_real(parameter.value);
      units_.back().numel += parameter.value.numel();
    }
    const Tensor flat = flat_parameter(unit, is_sharded() ? group_.size() : 1);
    units_.back().padded = flat.numel();
    const std::int64_t part = is_sharded() ? flat.numel() / group_.size() : flat.numel();
    shards_.push_back({.name = fmt::format("unit{}", shards_.size()),
                       .value = slice(flat, is_sharded() ? part * group_.rank() : 0, {part})});
  }
}

// _runtime_utils.py, _root_pre_forward: the optimizer has to finish before anything is gathered.
void FullyShardedDataParallel::begin_forward() {
  if (!std::exchange(has_streams_, true)) {
    unshard_stream_ = new_stream();
    reduce_stream_ = new_stream();
    all_reduce_stream_ = is_hybrid() ? new_stream() : reduce_stream_;
  }
  Event before;
  before.record();
  const StreamScope stream(unshard_stream_);
  before.wait();
}

Dtype FullyShardedDataParallel::compute_dtype(std::size_t unit) const {
  return options_.mixed_precision.param_dtype.value_or(shards_[unit].value.dtype());
}

// _flat_param.py, _init_param_reduce_dtypes: if parameters have another type and none is given for reductions,
// reductions use the parameters' type.
Dtype FullyShardedDataParallel::reduce_dtype(std::size_t unit) const {
  const MixedPrecisionPolicy& policy = options_.mixed_precision;
  return policy.reduce_dtype.value_or(policy.param_dtype.value_or(shards_[unit].value.dtype()));
}

void FullyShardedDataParallel::unshard(std::size_t unit, Site site) {
  unshard_as(unit, compute_dtype(unit), site);
}

void FullyShardedDataParallel::unshard_as(std::size_t index, Dtype dtype, Site site) {
  Unit& unit = units_[index];
  if (!is_sharded() || !exists(index) || std::exchange(unit.is_whole, true)) {
    return;
  }
  if (freed_.size() >= all_gathers_in_flight) {
    freed_.front().synchronize();
    freed_.pop_front();
  }
  const StreamScope stream(has_streams_ ? unshard_stream_ : current_stream());
  const Scope scope("fsdp.all_gather", gather_pairing_);
  const Tensor& kept = shards_[index].value;
  const Tensor shard = kept.dtype() == dtype ? kept : kept.to(dtype);
  reuse(unit.whole, unit.padded, dtype, shard.device(), shard.is_meta());
  if (shard.device().type == DeviceType::cpu &&
      this_rank().torch->fsdp_gathers_cpu_tensors) {  // _flat_param.py, _all_gather_flat_param
    all_gather_flat(unit.whole, shard, {.group = group_}, site);
  } else {
    all_gather_into_tensor(unit.whole, shard, {.group = group_}, site);
  }
}

void FullyShardedDataParallel::wait_for_unshard() const {
  Event gathered;
  {
    const StreamScope stream(unshard_stream_);
    gathered.record();
  }
  gathered.wait();
}

void FullyShardedDataParallel::reshard(std::size_t unit) {
  if (std::exchange(units_[unit].is_whole, false) && this_rank().torch->fsdp_limits_all_gathers) {
    freed_.emplace_back().record();
  }
}

void FullyShardedDataParallel::forward(const std::function<void(std::size_t)>& layers, Site site) {
  begin_forward();
  const bool prefetches = options_.forward_prefetch && !is_first_step_;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (exists(unit)) {
      unshard(unit, site);
      wait_for_unshard();
      if (prefetches && unit + 1 < units_.size()) {
        unshard(unit + 1, site);
      }
    }
    if (layers) {
      layers(unit);
    }
    const bool is_root = unit == 0;  // whose parameters the backward needs at once
    if (frees_after_forward() && !is_root) {
      reshard(unit);
    }
  }
}

// fully_sharded_data_parallel.py, _full_pre_state_dict_hook: summon_full_params for the root and the units in it, which
// gathers the full precision.
TensorList FullyShardedDataParallel::gather_state(Site site) {
  TensorList state;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    unshard_as(unit, shards_[unit].value.dtype(), site);
    if (exists(unit)) {
      state.push_back(is_sharded() ? units_[unit].whole.clone() : shards_[unit].value.clone());
    }
  }
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    reshard(unit);
  }
  return state;
}

// The backward visits units in the reverse order of their forwards' ends; the root's forward ends last.
void FullyShardedDataParallel::prefetch(std::size_t unit, Site site) {
  const std::size_t next = unit == 0 ? units_.size() - 1 : unit - 1;
  if (next > 0 && units_[next].needs_unshard && !std::exchange(units_[next].is_prefetched, true)) {
    unshard(next, site);
  }
}

void FullyShardedDataParallel::pre_backward(std::size_t unit, Site site) {
  if (!exists(unit)) {
    return;
  }
  if (!units_[unit].is_prefetched) {
    unshard(unit, site);
  }
  wait_for_unshard();
  units_[unit].needs_unshard = false;
  if (prefetch_ == BackwardPrefetch::pre) {
    prefetch(unit, site);
  }
}

void FullyShardedDataParallel::post_backward(std::size_t unit, Site site) {
  if (sync_gradients_ || frees_after_forward()) {
    reshard(unit);
  }
  if (prefetch_ == BackwardPrefetch::post) {
    prefetch(unit, site);
  }
  if (sync_gradients_) {
    reduce(unit, site);
  }
}

// Flat parameters gathered ahead in forward were split into views before the preceding unit computed, and autograd goes
// back in the order of creation: their gradients are complete when that unit's are.
void FullyShardedDataParallel::backward(const std::function<Tensor(std::size_t, const Shape&)>& gradient,
                                        Site site) {
  for (Unit& unit : units_) {
    unit.needs_unshard = is_sharded();
    unit.is_prefetched = false;
  }
  pre_backward(0, site);
  const bool is_late = options_.forward_prefetch && !is_first_step_;
  std::optional<std::size_t> pending;
  for (std::size_t unit = units_.size(); unit-- > 0;) {
    if (!exists(unit)) {
      continue;
    }
    if (unit > 0) {
      pre_backward(unit, site);
    }
    Tensor mine = gradient(unit, {units_[unit].padded});
    if (mine.dtype() != compute_dtype(unit)) {
      mine = mine.to(compute_dtype(unit));
    }
    Tensor& accumulated = units_[unit].accumulated;
    if (accumulated) {
      mine = own(std::move(mine));
      mine.add_(accumulated);
    }
    accumulated = std::move(mine);
    if (pending) {
      post_backward(*std::exchange(pending, std::nullopt), site);
    }
    if (is_late && unit > 0) {
      pending = unit;
    } else {
      post_backward(unit, site);
    }
  }
  if (pending) {
    post_backward(*pending, site);
  }
  finish_backward();
}

// _init_utils.py, default_hooks.py: about the square root of the number of ranks, so that neither half overflows.
double FullyShardedDataParallel::divide_before() const {
  double factor = 1;
  while (std::fmod(averaged(), factor) == 0 && averaged() / factor > factor) {
    factor *= 2;
  }
  return factor;
}

void FullyShardedDataParallel::reduce(std::size_t index, Site site) {
  Unit& unit = units_[index];
  const Scope scope("fsdp.reduce", reduce_pairing_);
  unit.to_reduce = own(std::exchange(unit.accumulated, Tensor()));
  if (unit.to_reduce.dtype() != reduce_dtype(index)) {
    unit.to_reduce = unit.to_reduce.to(reduce_dtype(index));
  }
  divide(unit.to_reduce, divide_before());
  Event ready;
  ready.record();
  const StreamScope stream(reduce_stream_);
  ready.wait();
  if (!is_sharded()) {
    all_reduce(unit.to_reduce, {.group = group_}, site);
    unit.reduced = unit.to_reduce;
    return;
  }
  const Tensor& shard = shards_[index].value;
  reuse(unit.reduced, shard.numel(), unit.to_reduce.dtype(), shard.device(), unit.to_reduce.is_meta());
  reduce_scatter_tensor(unit.reduced, unit.to_reduce, {.group = group_}, site);
  if (is_hybrid()) {
    reduce_replicas(unit.reduced, site);
  }
}

// _runtime_utils.py, _reduce_grad: on a stream of its own, so that the next reduce_scatter need not wait for it.
void FullyShardedDataParallel::reduce_replicas(const Tensor& part, Site site) {
  Event scattered;
  scattered.record();
  const StreamScope stream(all_reduce_stream_);
  scattered.wait();
  all_reduce(part, {.group = options_.replicate_group}, site);
}

void FullyShardedDataParallel::finish_backward() {
  is_first_step_ = false;
  Event reduced;
  {
    const StreamScope stream(all_reduce_stream_);  // which waits for the reduce stream, if it is another
    reduced.record();
  }
  reduced.wait();
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (Tensor part = std::exchange(units_[unit].reduced, Tensor())) {
      divide(part, averaged() / divide_before());
      units_[unit].to_reduce = Tensor();
      if (part.dtype() != shards_[unit].value.dtype()) {
        part = part.to(shards_[unit].value.dtype());
      }
      accumulate_gradient(shards_[unit], std::move(part));
    }
  }
}

// torch's padding is zeros, which add nothing to a norm.
Tensor FullyShardedDataParallel::without_padding(std::size_t unit, const Tensor& part) const {
  const std::int64_t first = is_sharded() ? part.numel() * group_.rank() : 0;
  const std::int64_t count = std::clamp<std::int64_t>(units_[unit].numel - first, 0, part.numel());
  return count == part.numel() ? part : slice(part, 0, {count});
}

double FullyShardedDataParallel::clip_grad_norm(double max_norm, double norm_type, Site site) {
  check_norm_type(norm_type);
  double power = 0;
  TensorList gradients;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (const Tensor& gradient = shards_[unit].grad) {
      gradients.push_back(gradient);
      const double part = norm_power(without_padding(unit, gradient), norm_type);
      power = std::isinf(norm_type) ? std::max(power, part) : power + part;
    }
  }
  if (is_sharded()) {
    const Tensor total =
        Tensor::full({1}, power, shards_.back().value.dtype(), shards_.back().value.device());
    const Scope scope("fsdp.clip_grad_norm", "fsdp.clip_grad_norm");
    all_reduce(total, {.op = std::isinf(norm_type) ? ReduceOp::max : ReduceOp::sum, .group = group_}, site);
    power = total.item();
  }
  const double norm = norm_of_power(power, norm_type);
  scale_gradients(gradients, norm, max_norm);
  return norm;
}

}  // namespace rollcall
