#pragma once

// Flat tensors: several tensors end to end in one, as DDP's buckets and coalesced broadcasts send them.

#include <span>

#include "sim/tensor/tensor.h"

namespace rollcall {

// The elements of all `tensors`, in order, in one new tensor of one dimension. All of one dtype and device.
// Costs one number when every element has the same value.
Tensor flatten(std::span<const Tensor> tensors);

// Throws NotImplementedError for a tensor of a complex type: it would have two elements for each of its own.
void require_real(const Tensor& tensor);

// Overwrites `target` with the elements of `flat` from `offset` on.
void unflatten_from(const Tensor& flat, std::int64_t offset, const Tensor& target);
// The reverse of flatten: overwrites `tensors` with the elements of `flat`.
void unflatten(const Tensor& flat, std::span<const Tensor> tensors);

// If all elements of all tensors have one value (empty tensors have any), gives it to all of `flat`. False if not, and
// for a meta tensor.
bool fill_if_alike(const Tensor& flat, std::span<const Tensor> tensors);

// Where `count` elements of a flat tensor come from.
struct FlatPiece {
  const Tensor* source = nullptr;
  std::int64_t from = 0;
  std::int64_t count = 0;
  std::int64_t to = 0;
};
// Overwrites those elements of `flat` that a piece names; the values of the others are unspecified.
void fill_flat(const Tensor& flat, std::span<const FlatPiece> pieces);

// Returns `tensor` if it fits and nothing else uses it, else replaces it with a new one. Its values may be overwritten.
// `is_meta`: always with a new one, which has no values.
const Tensor& reuse(Tensor& tensor, std::int64_t numel, Dtype dtype, Device device, bool is_meta = false);

// tensor.div_(divisor): each element rounded once. A reciprocal would be rounded to a short type first.
void divide(const Tensor& tensor, double divisor);

// A copy of the elements of `flat` from `offset` on, in the given shape.
Tensor slice(const Tensor& flat, std::int64_t offset, const Shape& shape);

// One dimension, int32, the given values.
Tensor int_tensor(std::span<const std::int32_t> values, Device device);

}  // namespace rollcall
