#include "sim/train/fsdp_param.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/train/flat.h"

namespace rollcall {
namespace {

Shape with_rows(const Shape& shape, std::int64_t rows) {
  std::array<std::int64_t, 8> sizes{};
  std::ranges::copy(shape.sizes(), sizes.begin());
  sizes[0] = rows;
  return Shape(std::span<const std::int64_t>(sizes.data(), shape.sizes().size()));
}

bool has_other_readers(const Tensor& tensor) {
  return tensor.storage()->references.load(std::memory_order_relaxed) > 1;
}

}  // namespace

FsdpParam::FsdpParam(const Parameter& whole, Rank shard_rank, Rank shard_size) : shape_(whole.value.shape()) {
  if (shape_.sizes().empty()) {
    throw ValueError(fmt::format(
        "fully_shard doesn't support scalar parameters. Change {} to a 1D tensor with numel equal to 1.",
        whole.name));
  }
  rows_ = shape_.sizes()[0];
  row_numel_ = rows_ == 0 ? 0 : shape_.numel() / rows_;
  padded_rows_ = (rows_ + shard_size - 1) / shard_size;
  sharded.name = whole.name;
  sharded.requires_grad = whole.requires_grad;
  const std::int64_t mine = numel_of(shard_rank);
  sharded.value = slice(whole.value, mine == 0 ? 0 : offset_of(shard_rank),
                        with_rows(shape_, row_numel_ == 0 ? 0 : mine / row_numel_));
}

std::int64_t FsdpParam::offset_of(Rank rank) const {
  return std::min(rows_, padded_rows_ * rank) * row_numel_;
}

std::int64_t FsdpParam::numel_of(Rank rank) const { return offset_of(rank + 1) - offset_of(rank); }

Tensor FsdpParam::padded_rows() const {
  const Tensor& rows = sharded.value;
  const Tensor padded = rows.new_zeros({padded_numel()});
  if (!rows.is_meta() && !fill_if_alike(padded, {&rows, 1})) {
    const FlatPiece piece{&rows, 0, rows.numel(), 0};
    fill_flat(padded, {&piece, 1});
  }
  return padded;
}

// _fsdp_param.py, init_dtype_attrs: no dtype where nothing has to be cast.
void FsdpParam::init_dtypes(const MixedPrecisionPolicy& policy) {
  reduce_dtype_ = policy.reduce_dtype == policy.param_dtype ? std::nullopt : policy.reduce_dtype;
  const bool casts = policy.param_dtype != dtype() && is_floating(dtype());
  param_dtype_ = casts ? policy.param_dtype : std::nullopt;
}

void FsdpParam::accumulate(const Tensor& gradient) {
  if (!unsharded_grad_) {
    unsharded_grad_ = gradient;
    return;
  }
  if (has_other_readers(unsharded_grad_)) {
    unsharded_grad_ = unsharded_grad_.clone();
  }
  unsharded_grad_.add_(gradient);
}

void FsdpParam::keep_accumulated() {
  if (!reduce_dtype_ || !unsharded_grad_ || unsharded_grad_.dtype() == *reduce_dtype_) {
    return;
  }
  accumulated_grad_ = unsharded_grad_.to(*reduce_dtype_);
  unsharded_grad_ = Tensor();
}

void FsdpParam::merge_accumulated() {
  if (accumulated_grad_ && unsharded_grad_) {
    accumulated_grad_.add_(unsharded_grad_.dtype() == accumulated_grad_.dtype()
                               ? unsharded_grad_
                               : unsharded_grad_.to(accumulated_grad_.dtype()));
    unsharded_grad_ = Tensor();
  }
}

Tensor FsdpParam::take_gradient() {
  return std::exchange(accumulated_grad_ ? accumulated_grad_ : unsharded_grad_, Tensor());
}

Tensor FsdpParam::zero_gradient() const {
  return Tensor::zeros(shape_, compute_dtype(), sharded.value.device());
}

Tensor FsdpParam::gradient_slot() {
  if (!spare_ || has_other_readers(spare_)) {
    spare_ = Tensor::zeros(sharded.value.shape(), dtype(), sharded.value.device());
  }
  return spare_;
}

void FsdpParam::add_gradient(Tensor gradient) {
  if (sharded.grad) {
    sharded.grad.add_(gradient);
  } else {
    sharded.grad = std::move(gradient);
  }
}

}  // namespace rollcall
