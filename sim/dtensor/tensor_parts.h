#pragma once

// Parts of tensors along a dimension, as torch.narrow, torch.cat and padding give them. They are copies; tensors of one
// value stay one number.

#include <cstddef>
#include <cstdint>

#include "sim/tensor/tensor.h"

namespace rollcall::detail {

// The size of a dimension, and the shape with another size there.
std::int64_t size_at(const Shape& shape, int dim);
Shape with_size(const Shape& shape, int dim, std::int64_t size);

// `length` of dimension `dim` from `start` on.
Tensor narrow(const Tensor& tensor, int dim, std::int64_t start, std::int64_t length);
// End to end along `dim`. At least one.
Tensor concatenate(const TensorList& tensors, int dim);
// The tensor with at least `size` along `dim`, padded at its end. The padding is never read: it repeats the value of a
// tensor that has only one.
Tensor padded_to(const Tensor& tensor, int dim, std::int64_t size);

// Chunk `index` of `count` as torch.chunk splits a dimension of this size: all as large as the first, except for the
// last ones, which may be smaller or empty.
struct Chunk {
  std::int64_t start = 0;
  std::int64_t length = 0;
};
Chunk chunk_of(std::int64_t size, std::int64_t count, std::int64_t index);
std::int64_t largest_chunk(std::int64_t size, std::int64_t count);

}  // namespace rollcall::detail
