#pragma once

// Flat tensors: several tensors end to end in one, as DDP's buckets and coalesced broadcasts send them.

#include <span>

#include "sim/tensor/tensor.h"

namespace rollcall {

// The elements of all `tensors`, in order, in one new tensor of one dimension. All of one dtype and device.
// Costs one number when every element has the same value.
Tensor flatten(std::span<const Tensor> tensors);

// Overwrites `target` with the elements of `flat` from `offset` on.
void unflatten_from(const Tensor& flat, std::int64_t offset, const Tensor& target);
// The reverse of flatten: overwrites `tensors` with the elements of `flat`.
void unflatten(const Tensor& flat, std::span<const Tensor> tensors);

// A copy of `count` elements of `flat` from `offset` on, in the given shape.
Tensor slice(const Tensor& flat, std::int64_t offset, const Shape& shape);

// One dimension, int32, the given values.
Tensor int_tensor(std::span<const std::int32_t> values, Device device);

}  // namespace rollcall
