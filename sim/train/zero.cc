#include "sim/train/zero.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "sim/c10d/objects.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"
#include "sim/train/flat.h"

namespace rollcall {

std::vector<std::vector<std::uint32_t>> partition_parameters(const std::vector<std::int64_t>& numel,
                                                             Rank world_size) {
  std::vector<std::uint32_t> by_size(numel.size());
  std::iota(by_size.begin(), by_size.end(), 0U);
  std::ranges::stable_sort(by_size, std::greater{}, [&](std::uint32_t index) { return numel[index]; });
  std::vector<std::vector<std::uint32_t>> shards(static_cast<std::size_t>(world_size));
  // (elements, rank): the least loaded first.
  using Load = std::pair<std::int64_t, std::size_t>;
  std::vector<Load> loads;
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    loads.emplace_back(0, rank);  // already a heap
  }
  for (const std::uint32_t index : by_size) {
    std::ranges::pop_heap(loads, std::greater{});
    Load& least = loads.back();
    shards[least.second].push_back(index);
    least.first += numel[index];
    std::ranges::push_heap(loads, std::greater{});
  }
  return shards;
}

namespace {

std::vector<std::int64_t> sizes_of(const std::vector<Parameter*>& parameters) {
  std::vector<std::int64_t> sizes;
  for (const Parameter* parameter : parameters) {
    sizes.push_back(parameter->value.numel());
  }
  return sizes;
}

}  // namespace

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(std::vector<Parameter*> parameters,
                                                 const OptimizerOptions& optimizer, ZeroOptions options)
    : parameters_(std::move(parameters)),
      options_(std::move(options)),
      group_(options_.group ? options_.group : world()) {
  if (parameters_.empty()) {
    throw ValueError("Optimizer got an empty parameter list");
  }
  device_ = parameters_.front()->value.device();
  pairing_ = options_.name.empty() ? "zero.shard" : "zero.shard of " + options_.name;
  shards_ = partition_parameters(sizes_of(parameters_), group_.size());
  std::vector<Parameter*> mine;
  for (const std::uint32_t index : shards_[static_cast<std::size_t>(group_.rank())]) {
    mine.push_back(parameters_[index]);
  }
  optimizer_ = make_optimizer(std::move(mine), optimizer);
}

void ZeroRedundancyOptimizer::step(Site site) {
  Join::notify_join_context(*this, site);
  optimizer_->step();
  sync_parameters(site);
}

void ZeroRedundancyOptimizer::zero_grad(bool set_to_none) {
  for (Parameter* parameter : parameters_) {
    rollcall::zero_grad(*parameter, set_to_none);
  }
}

std::vector<ZeroRedundancyOptimizer::Shipment> ZeroRedundancyOptimizer::broadcast_shard(Rank rank,
                                                                                        Site site) const {
  const Rank source = group_.members().ranks[static_cast<std::size_t>(rank)];
  std::vector<Shipment> shipments;
  for (const std::uint32_t index : shards_[static_cast<std::size_t>(rank)]) {
    if (shipments.empty() || !options_.parameters_as_bucket_view) {
      shipments.emplace_back();
    }
    shipments.back().parameters.push_back(parameters_[index]->value);
  }
  if (options_.parameters_as_bucket_view) {
    if (shipments.empty()) {
      shipments.emplace_back();  // a rank without parameters still has a bucket, of one element
    }
    const TensorList& parts = shipments.back().parameters;
    shipments.back().flat = parts.empty() ? Tensor::zeros({1}, Dtype::float32, device_) : flatten(parts);
  }
  for (Shipment& shipment : shipments) {
    const Tensor& tensor = shipment.flat ? shipment.flat : shipment.parameters.front();
    shipment.work = broadcast(tensor, source, {.group = group_, .async_op = true}, site);
  }
  return shipments;
}

// All broadcasts are in flight before the first is waited for.
void ZeroRedundancyOptimizer::sync_parameters(Site site) const {
  const Scope scope("zero.shard", pairing_);
  std::vector<Shipment> shipments;
  for (Rank rank = 0; rank < group_.size(); ++rank) {
    std::ranges::move(broadcast_shard(rank, site), std::back_inserter(shipments));
  }
  for (const Shipment& shipment : shipments) {
    shipment.work.wait();
    if (shipment.flat && !shipment.parameters.empty()) {
      unflatten(shipment.flat, shipment.parameters);
    }
  }
}

void ZeroRedundancyOptimizer::consolidate_state_dict(Rank to, Site site) {
  consolidated_.clear();
  for (Rank rank = 0; rank < group_.size(); ++rank) {
    const bool is_mine = rank == group_.rank();
    if (rank == to) {
      if (is_mine) {
        consolidated_.push_back(optimizer_->state_dict());
      }
      continue;  // the target does not send to itself
    }
    ObjectList object{is_mine ? optimizer_->state_dict() : Object(0)};
    broadcast_object_list(object, group_.members().ranks[static_cast<std::size_t>(rank)], group_, site);
    if (group_.rank() == to) {
      consolidated_.push_back(std::move(object.front()));
    }
  }
}

Object ZeroRedundancyOptimizer::state_dict() const {
  if (consolidated_.empty()) {
    throw RuntimeError(
        fmt::format("Optimizer state has not been consolidated on this rank. Please call "
                    "`consolidate_state_dict(to={})` on all ranks beforehand if you meant to save the global "
                    "state.",
                    group_.rank()));
  }
  return Object::list(consolidated_);
}

namespace {

const char* gradient_phrase(const Parameter& parameter) {
  if (!parameter.grad) {
    return "None";
  }
  const Storage& storage = *parameter.grad.settle().storage();
  const bool is_zero = storage.form == Storage::Form::uniform && decode(storage.value, storage.dtype) == 0;
  return is_zero ? "zero" : "that of an iteration before it joined";
}

}  // namespace

// torch says nothing: DDP's shadowing has written no gradients, but the shard is updated anyway.
void ZeroRedundancyOptimizer::observe_stale_gradients() const {
  for (const std::uint32_t index : shards_[static_cast<std::size_t>(group_.rank())]) {
    const Parameter& parameter = *parameters_[index];
    if (parameter.missed_gradient) {
      Observation observation{.kind = Observation::Kind::stale_gradient};
      observation.tensor = "the gradient of " + parameter.name;
      observation.got = gradient_phrase(parameter);
      observation.want = "the average of this iteration";
      observation.handle = name();
      this_rank().backend->observer().observe(observation);
      return;  // one per shard is enough
    }
  }
}

class ZeroRedundancyOptimizer::Hook final : public JoinHook {
 public:
  explicit Hook(ZeroRedundancyOptimizer& optimizer) : optimizer_(optimizer) {}
  void main_hook() override {
    optimizer_.observe_stale_gradients();
    optimizer_.step({});
  }

 private:
  ZeroRedundancyOptimizer& optimizer_;  // outlives its hook, as Join requires
};

std::unique_ptr<JoinHook> ZeroRedundancyOptimizer::join_hook(const Kwargs&) {
  return std::make_unique<Hook>(*this);
}

}  // namespace rollcall
