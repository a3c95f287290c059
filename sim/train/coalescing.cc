#include "sim/train/coalescing.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/arguments.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"
#include "sim/train/flat.h"

namespace rollcall {
namespace {

std::string tuple_text(const Shape& shape) { return fmt::format("({})", fmt::join(shape.sizes(), ", ")); }

std::int64_t rows_of(const Tensor& tensor) {
  return tensor.shape().sizes().empty() ? tensor.numel() : tensor.shape().sizes().front();
}

// The part of a tensor that each of `ranks` gets when torch.chunk splits it.
Shape chunk_of(const Tensor& tensor, Rank ranks) {
  std::vector<std::int64_t> sizes(tensor.shape().sizes().begin(), tensor.shape().sizes().end());
  if (!sizes.empty()) {
    sizes.front() = (sizes.front() + ranks - 1) / ranks;
  }
  return Shape(std::span<const std::int64_t>(sizes));
}

std::int64_t numel_of(const TensorList& tensors) {
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors) {
    total += tensor.numel();
  }
  return total;
}

}  // namespace

CoalescingManager::CoalescingManager(const CoalescingOptions& options)
    : group_(options.group ? options.group : world()), async_ops_(options.async_ops) {
  if (this_rank().torch->coalescing == Coalescing::unknown) {
    throw TypeError("_coalescing_manager() missing 2 required positional arguments: 'group' and 'reqs'");
  }
}

bool CoalescingManager::is_outside(OpKind kind) const {
  if (!group_.is_member()) {
    warn_not_in_group(name_in(this_rank().torch->release, kind));
    return true;
  }
  return false;
}

void CoalescingManager::all_reduce(const Tensor& tensor, ReduceOp op) {
  if (!is_outside(OpKind::all_reduce)) {
    calls_.push_back({OpKind::all_reduce, tensor, {}, op});
  }
}

void CoalescingManager::all_gather_into_tensor(const Tensor& output, const Tensor& input) {
  if (!is_outside(OpKind::all_gather_into_tensor)) {
    calls_.push_back({OpKind::all_gather_into_tensor, input, output});
  }
}

void CoalescingManager::reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op) {
  if (!is_outside(OpKind::reduce_scatter_tensor)) {
    calls_.push_back({OpKind::reduce_scatter_tensor, input, output, op});
  }
}

// 2.6 checks the first call only, and takes from the others what that one needs.
void CoalescingManager::check_kinds() const {
  const TorchTraits& torch = *this_rank().torch;
  const OpKind first = calls_.front().kind;
  if (torch.coalescing == Coalescing::by_first_call) {
    const bool lacks_output =
        std::ranges::any_of(calls_, [](const Call& call) { return !static_cast<bool>(call.filled); });
    if (first != OpKind::all_reduce && lacks_output) {
      throw TypeError("Invariant encountered: value was None when it should not be");
    }
    return;
  }
  std::set<std::string_view> names;  // Python's set has them in an order of its own
  for (const Call& call : calls_) {
    names.insert(name_in(torch.release, call.kind));
  }
  if (names.size() > 1) {
    throw RuntimeError(fmt::format(
        "Coalescing manager requires all collectives to be the same type, but got mixed types: {{'{}'}}",
        fmt::join(names, "', '")));
  }
}

// ProcessGroupGloo.cpp, allgather_coalesced and reduce_scatter_tensor_coalesced.
void CoalescingManager::check_sizes() const {
  const Rank ranks = group_.size();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    if (calls_.front().kind == OpKind::all_gather_into_tensor &&
        call.filled.numel() != ranks * call.given.numel()) {
      throw RuntimeError(
          fmt::format("ProcessGroupGloo::allgather_coalesced: invalid size of output tensor at index {} "
                      "(expected length {}, got {})",
                      i, tuple_text(call.given.shape()), tuple_text(chunk_of(call.filled, ranks))));
    }
    if (calls_.front().kind == OpKind::reduce_scatter_tensor &&
        call.given.numel() != ranks * call.filled.numel()) {
      throw RuntimeError(
          fmt::format("Check failed: outputShape[0] * worldSize == inputShape[0] ({} vs. {}). ",
                      rows_of(call.filled) * ranks, rows_of(call.given)));
    }
  }
  const Dtype dtype = calls_.front().given.dtype();
  if (std::ranges::any_of(calls_, [&](const Call& call) { return call.given.dtype() != dtype; })) {
    throw NotImplementedError("rollcall: coalesced calls with tensors of several dtypes are not simulated");
  }
}

TensorList CoalescingManager::given() const {
  TensorList tensors;
  for (const Call& call : calls_) {
    tensors.push_back(call.given);
  }
  return tensors;
}

Work CoalescingManager::reduce_all(Site site) const {
  return all_reduce_coalesced(given(), {.op = calls_.front().reduce, .group = group_, .async_op = async_ops_},
                              site);
}

Work CoalescingManager::gather_all(Site site) {
  const TensorList inputs = given();
  const Tensor input = flatten(inputs);
  packed_ = input.new_zeros({group_.size() * input.numel()});
  return rollcall::all_gather_into_tensor(packed_, input, {.group = group_, .async_op = async_ops_}, site);
}

// Every rank's part of each tensor, rank after rank.
Work CoalescingManager::reduce_scatter_all(Site site) {
  const TensorList inputs = given();
  const std::int64_t total = numel_of(inputs);
  const Tensor input = inputs.front().new_zeros({total});
  if (!fill_if_alike(input, inputs) && !input.is_meta()) {
    std::vector<FlatPiece> pieces;
    std::int64_t offset = 0;
    for (const Tensor& tensor : inputs) {
      const std::int64_t part = tensor.numel() / group_.size();
      for (Rank rank = 0; rank < group_.size(); ++rank) {
        pieces.push_back({&tensor, rank * part, part, rank * (total / group_.size()) + offset});
      }
      offset += part;
    }
    fill_flat(input, pieces);
  }
  packed_ = input.new_zeros({total / group_.size()});
  return rollcall::reduce_scatter_tensor(
      packed_, input, {.op = calls_.front().reduce, .group = group_, .async_op = async_ops_}, site);
}

void CoalescingManager::end(Site site) {
  if (calls_.empty()) {
    if (this_rank().torch->coalescing == Coalescing::by_first_call) {
      throw Error("UnboundLocalError",
                  "cannot access local variable 'work' where it is not associated with a value");
    }
    return;
  }
  check_kinds();
  const OpKind kind = calls_.front().kind;
  if (kind == OpKind::all_reduce) {
    work_ = reduce_all(site);
    return;
  }
  check_sizes();
  work_ = kind == OpKind::all_gather_into_tensor ? gather_all(site) : reduce_scatter_all(site);
  if (!async_ops_) {
    unpack();
  }
}

void CoalescingManager::wait() {
  if (!work_.is_nothing()) {
    work_.wait();
  }
  unpack();
}

void CoalescingManager::unpack() {
  if (!packed_ || packed_.is_meta()) {
    return;
  }
  const bool gathers = calls_.front().kind == OpKind::all_gather_into_tensor;
  const Rank parts = gathers ? group_.size() : 1;
  const std::int64_t row = packed_.numel() / parts;
  std::int64_t offset = 0;
  for (const Call& call : calls_) {
    const std::int64_t part = call.filled.numel() / parts;
    std::vector<FlatPiece> pieces;
    for (Rank rank = 0; rank < parts; ++rank) {
      pieces.push_back({&packed_, rank * row + offset, part, rank * part});
    }
    fill_flat(call.filled, pieces);
    offset += part;
  }
  packed_ = Tensor();
}

}  // namespace rollcall
