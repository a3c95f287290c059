#include "sim/dtensor/tensor_parts.h"

#include <algorithm>
#include <vector>

#include "sim/base/expects.h"
#include "sim/tensor/elements.h"

namespace rollcall::detail {
namespace {

// A tensor as rows of runs: what lies before a dimension, and the elements of one step along it.
struct Strides {
  std::int64_t rows = 1;  // product of the dimensions before
  std::int64_t run = 1;   // of those after it
};

Strides strides_around(const Shape& shape, int dim) {
  Strides strides;
  for (std::size_t i = 0; i < shape.sizes().size(); ++i) {
    if (static_cast<int>(i) < dim) {
      strides.rows *= shape.sizes()[i];
    } else if (static_cast<int>(i) > dim) {
      strides.run *= shape.sizes()[i];
    }
  }
  return strides;
}

bool is_uniform(const Tensor& tensor) { return tensor.settle().storage()->form == Storage::Form::uniform; }

// Copies `count` steps of a dimension from one tensor into another that differs only in that dimension.
void copy_steps(const Tensor& target, std::int64_t to, const Tensor& source, std::int64_t from,
                std::int64_t count, int dim) {
  const Strides strides = strides_around(source.shape(), dim);
  const std::int64_t target_row = size_at(target.shape(), dim) * strides.run;
  const std::int64_t source_row = size_at(source.shape(), dim) * strides.run;
  for (std::int64_t row = 0; row < strides.rows && count * strides.run > 0; ++row) {
    copy_elements(*target.storage(), row * target_row + to * strides.run, *source.settle().storage(),
                  row * source_row + from * strides.run, count * strides.run);
  }
}

}  // namespace

std::int64_t size_at(const Shape& shape, int dim) {
  expects(dim >= 0 && static_cast<std::size_t>(dim) < shape.sizes().size(), "a tensor has this dimension");
  return shape.sizes()[static_cast<std::size_t>(dim)];
}

Shape with_size(const Shape& shape, int dim, std::int64_t size) {
  std::vector<std::int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
  sizes[static_cast<std::size_t>(dim)] = size;
  return Shape(std::span<const std::int64_t>(sizes));
}

Tensor narrow(const Tensor& tensor, int dim, std::int64_t start, std::int64_t length) {
  const Tensor part = tensor.new_zeros(with_size(tensor.shape(), dim, length));
  if (tensor.is_meta()) {
    return part;
  }
  if (is_uniform(tensor)) {
    part.storage()->value = tensor.storage()->value;
    return part;
  }
  copy_steps(part, 0, tensor, start, length, dim);
  part.storage()->collapse_if_uniform();
  return part;
}

Tensor concatenate(const TensorList& tensors, int dim) {
  std::int64_t size = 0;
  for (const Tensor& tensor : tensors) {
    size += size_at(tensor.shape(), dim);
  }
  const Tensor& first = tensors.front();
  const Tensor whole = first.new_zeros(with_size(first.shape(), dim, size));
  const bool is_one_value = std::ranges::all_of(tensors, [&](const Tensor& tensor) {
    return is_uniform(tensor) && tensor.storage()->value == first.storage()->value;
  });
  if (first.is_meta()) {
    return whole;
  }
  if (is_one_value) {
    whole.storage()->value = first.storage()->value;
    return whole;
  }
  std::int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t steps = size_at(tensor.shape(), dim);
    copy_steps(whole, at, tensor, 0, steps, dim);
    at += steps;
  }
  whole.storage()->collapse_if_uniform();
  return whole;
}

Tensor padded_to(const Tensor& tensor, int dim, std::int64_t size) {
  const std::int64_t missing = size - size_at(tensor.shape(), dim);
  if (missing <= 0) {
    return tensor;
  }
  const Tensor padding = tensor.new_zeros(with_size(tensor.shape(), dim, missing));
  if (!tensor.is_meta() && is_uniform(tensor)) {
    padding.storage()->value = tensor.storage()->value;
  }
  return concatenate({tensor, padding}, dim);
}

std::int64_t largest_chunk(std::int64_t size, std::int64_t count) { return (size + count - 1) / count; }

Chunk chunk_of(std::int64_t size, std::int64_t count, std::int64_t index) {
  const std::int64_t chunk = largest_chunk(size, count);
  const std::int64_t start = std::min(size, chunk * index);
  return {start, std::min(chunk, size - start)};
}

}  // namespace rollcall::detail
