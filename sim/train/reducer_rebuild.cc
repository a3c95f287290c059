// Reducer: rebuilding the buckets, and the errors that prevent it.

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/scope.h"
#include "sim/train/flat.h"
#include "sim/train/reducer.h"

namespace rollcall {

bool Reducer::should_rebuild_buckets() const {
  return (options_.static_graph || !options_.find_unused_parameters) && !has_rebuilt_;
}

void Reducer::push_all_rebuilt_parameters() {
  if (!should_rebuild_buckets() || !rebuilt_parameters_.empty()) {
    return;
  }
  rebuilt_parameters_.resize(parameters_.size());
  std::iota(rebuilt_parameters_.begin(), rebuilt_parameters_.end(), 0U);
}

void Reducer::rebuild_buckets(Site site) {
  ensure_prior_reduction_finished();
  if (!should_rebuild_buckets() || rebuilt_parameters_.empty()) {
    return;
  }
  TensorList values;
  for (const std::uint32_t index : rebuilt_parameters_) {
    values.push_back(parameters_[index]->value);
  }
  BucketIndices agreed =
      agree_on_buckets(assign_buckets(values, options_.bucket_limits, rebuilt_parameters_), site);
  has_rebuilt_ = true;
  rebuilt_parameters_.clear();
  initialize_buckets(std::move(agreed));
}

namespace {

// reducer.cpp, initialize_buckets. The data received may come from another call.
void check_received(bool is_valid) {
  if (!is_valid) {
    throw RuntimeError("Out of range variable index specified.");
  }
}

void check_buckets(const BucketIndices& buckets, std::size_t parameters) {
  std::vector<bool> placed(parameters, false);
  for (const std::vector<std::uint32_t>& bucket : buckets) {
    for (const std::uint32_t index : bucket) {
      check_received(index < parameters && !placed[index]);
      placed[index] = true;
    }
  }
  check_received(std::ranges::count(placed, false) == 0);
}

}  // namespace

// All ranks take rank 0's buckets: the order in which gradients become ready may differ.
BucketIndices Reducer::agree_on_buckets(const BucketIndices& mine, Site site) const {
  const Scope scope("ddp.rebuild", rebuild_pairing_);
  const Rank root = options_.group.members().ranks.front();
  const Device device = parameters_.front()->value.device();
  std::vector<std::int32_t> order;
  std::vector<std::int32_t> sizes;
  for (const std::vector<std::uint32_t>& bucket : mine) {
    order.insert(order.end(), bucket.begin(), bucket.end());
    sizes.push_back(static_cast<std::int32_t>(bucket.size()));
  }
  order.push_back(static_cast<std::int32_t>(mine.size()));
  const Tensor order_tensor = int_tensor(order, device);
  broadcast(order_tensor, root, {.group = options_.group}, site);
  const auto count = static_cast<std::size_t>(order_tensor.at(order_tensor.numel() - 1));
  check_received(count > 0 && count <= parameters_.size());
  sizes.resize(count, sizes.back());  // torch pads with its own last size, to be overwritten
  const Tensor size_tensor = int_tensor(sizes, device);
  broadcast(size_tensor, root, {.group = options_.group}, site);

  BucketIndices agreed(count);
  std::int64_t next = 0;
  for (std::size_t bucket = 0; bucket < count; ++bucket) {
    const auto size = static_cast<std::int64_t>(size_tensor.at(static_cast<std::int64_t>(bucket)));
    for (std::int64_t i = 0; i < size && next + 1 < order_tensor.numel(); ++i) {
      agreed[bucket].push_back(static_cast<std::uint32_t>(order_tensor.at(next++)));
    }
  }
  check_buckets(agreed, parameters_.size());
  return agreed;
}

// "1 2", and the names if they are wanted.
std::string Reducer::unready_parameters() const {
  std::string names;
  std::string indices;
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    if (!ready_[index]) {
      names += (names.empty() ? "" : ", ") + parameters_[index]->name;
      indices += fmt::format("{}{}", indices.empty() ? "" : " ", index);
    }
  }
  const Rank rank = options_.group.rank();
  std::string text;
  if (options_.name_parameters) {
    text = fmt::format("\nParameters which did not receive grad for rank {}: {}", rank, names);
  }
  text += fmt::format("\nParameter indices which did not receive grad for rank {}: {}", rank, indices);
  if (!options_.name_parameters) {
    text +=
        "\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or "
        "DETAIL to print out information about which particular parameters did not receive gradient on this "
        "rank as part of this error";
  }
  return text;
}

void Reducer::ensure_prior_reduction_finished() const {
  if (!requires_finalize_) {
    return;
  }
  if (options_.static_graph) {
    throw RuntimeError(
        "Expected to have finished reduction in the prior iteration before starting a new one. This error "
        "indicates that your training graph has changed in this iteration, e.g., one parameter is used in "
        "first iteration, but then got unused in the second iteration. this is not compatible with "
        "static_graph set to True.");
  }
  const char* const remedy =
      options_.find_unused_parameters
          ? "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` "
            "outputs participate in computing loss. You can fix this by "
          : "You can enable unused parameter detection by passing the keyword argument "
            "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \n";
  throw RuntimeError(fmt::format(
      "Expected to have finished reduction in the prior iteration before starting a new one. This error "
      "indicates that your module has parameters that were not used in producing loss. {}making sure all "
      "`forward` function outputs participate in calculating loss. \nIf you already have done the above, "
      "then the distributed data parallel module wasn't able to locate the output tensors in the return "
      "value of your module's `forward` function. Please include the loss function and the structure of the "
      "return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable).{}",
      remedy, unready_parameters()));
}

void Reducer::refuse_marking_twice(std::uint32_t index) const {
  if (!ready_[index]) {
    return;
  }
  const std::string which =
      options_.name_parameters
          ? fmt::format("Parameter at index {} with name {} has been marked as ready twice.", index,
                        parameters_[index]->name)
          : fmt::format("Parameter at index {} has been marked as ready twice.", index);
  throw RuntimeError(fmt::format(
      "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) "
      "Use of a module parameter outside the `forward` function. Please make sure model parameters are not "
      "shared across multiple concurrent forward-backward passes. or try to use _set_static_graph() as a "
      "workaround if this module graph does not change during training loop.2) Reused parameters in multiple "
      "reentrant backward passes. For example, if you use multiple `checkpoint` functions to wrap the same "
      "part of your model, it would result in the same set of parameters been used by different reentrant "
      "backward passes multiple times, and hence marking a variable ready multiple times. DDP does not "
      "support such use cases in default. You can try to use _set_static_graph() as a workaround if your "
      "module graph does not change over iterations.\n{} This means that multiple autograd engine  hooks "
      "have fired for this particular parameter during this iteration.{}",
      which,
      options_.name_parameters ? ""
                               : " You can set the environment variable TORCH_DISTRIBUTED_DEBUG to either "
                                 "INFO or DETAIL to print parameter names for further debugging."));
}

}  // namespace rollcall
