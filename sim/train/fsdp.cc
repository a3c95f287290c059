#include "sim/train/fsdp.h"

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/scope.h"
#include "sim/train/flat.h"

namespace rollcall {
namespace {

// The unit's parameters end to end, and zeros up to a multiple of `ranks`. Zeros that nobody reads would cost
// a tensor of one value its form, so padding repeats it.
Tensor flat_parameter(const Module& unit, Rank ranks, std::int64_t& padded) {
  TensorList values;
  for (const Parameter& parameter : unit.parameters) {
    values.push_back(parameter.value);
  }
  if (values.empty()) {
    throw ValueError("FullyShardedDataParallel got a unit without parameters");
  }
  const Tensor flat = flatten(values);
  padded = (flat.numel() + ranks - 1) / ranks * ranks;
  if (padded == flat.numel()) {
    return flat;
  }
  values.push_back(flat.storage()->form == Storage::Form::uniform
                       ? slice(flat, 0, {padded - flat.numel()})
                       : Tensor::zeros({padded - flat.numel()}, flat.dtype(), flat.device()));
  return flatten(values);
}

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(const std::vector<Module>& units, FsdpOptions options)
    : options_(std::move(options)), group_(options_.group ? options_.group : world()) {
  if (units.empty()) {
    throw ValueError("FullyShardedDataParallel got no units");
  }
  const std::string of = options_.name.empty() ? "" : " of " + options_.name;
  gather_pairing_ = "fsdp.all_gather" + of;
  reduce_pairing_ = "fsdp.reduce" + of;
  for (const Module& unit : units) {
    units_.emplace_back();
    const Tensor flat = flat_parameter(unit, group_.size(), units_.back().padded);
    const std::int64_t part = is_sharded() ? flat.numel() / group_.size() : flat.numel();
    shards_.push_back({.name = fmt::format("unit{}", shards_.size()),
                       .value = slice(flat, is_sharded() ? part * group_.rank() : 0, {part})});
  }
}

void FullyShardedDataParallel::unshard(std::size_t unit, Site site) {
  if (!is_sharded() || units_[unit].whole) {
    return;
  }
  const Scope scope("fsdp.all_gather", gather_pairing_);
  const Tensor& shard = shards_[unit].value;
  units_[unit].whole = Tensor::zeros({units_[unit].padded}, shard.dtype(), shard.device());
  all_gather_into_tensor(units_[unit].whole, shard, {.group = group_}, site);
}

void FullyShardedDataParallel::forward(const std::function<void(std::size_t)>& layers, Site site) {
  const bool frees = options_.strategy == ShardingStrategy::full_shard;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    unshard(unit, site);
    if (layers) {
      layers(unit);
    }
    const bool is_root = unit == 0;  // whose parameters the backward needs at once
    if (frees && !is_root) {
      units_[unit].whole = Tensor();
    }
  }
}

// fully_sharded_data_parallel.py, _full_pre_state_dict_hook: summon_full_params for the root and what is in it.
void FullyShardedDataParallel::gather_state(Site site) {
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    unshard(unit, site);
  }
  for (Unit& unit : units_) {
    unit.whole = Tensor();
  }
}

void FullyShardedDataParallel::backward(const std::function<Tensor(std::size_t, const Shape&)>& gradient,
                                        Site site) {
  for (std::size_t unit = units_.size(); unit-- > 0;) {
    unshard(unit, site);
    Tensor mine = gradient(unit, {units_[unit].padded});
    units_[unit].whole = Tensor();
    if (units_[unit].accumulated) {
      mine.add_(units_[unit].accumulated);
      units_[unit].accumulated = Tensor();
    }
    if (sync_gradients_) {
      reduce(unit, std::move(mine), site);
    } else {
      units_[unit].accumulated = std::move(mine);
    }
  }
}

void FullyShardedDataParallel::reduce(std::size_t unit, Tensor gradient, Site site) {
  const Scope scope("fsdp.reduce", reduce_pairing_);
  gradient.mul_(1.0 / group_.size());
  if (!is_sharded()) {
    all_reduce(gradient, {.group = group_}, site);
    accumulate_gradient(shards_[unit], std::move(gradient));
    return;
  }
  const Tensor& shard = shards_[unit].value;
  Tensor part = Tensor::zeros(shard.shape(), shard.dtype(), shard.device());
  reduce_scatter_tensor(part, gradient, {.group = group_}, site);
  accumulate_gradient(shards_[unit], std::move(part));
}

}  // namespace rollcall
