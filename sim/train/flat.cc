#include "sim/train/flat.h"

#include <algorithm>

#include "sim/base/expects.h"
#include "sim/tensor/elements.h"

namespace rollcall {
namespace {

bool all_uniform_alike(std::span<const Tensor> tensors) {
  const Storage& first = *tensors.front().settle().storage();
  return std::ranges::all_of(tensors, [&](const Tensor& tensor) {
    const Storage& storage = *tensor.settle().storage();
    return storage.form == Storage::Form::uniform && storage.value == first.value;
  });
}

void copy_from_flat(const Storage& flat, std::int64_t offset, Storage& target) {
  expects(offset >= 0 && offset + target.numel <= flat.numel, "a part lies inside its flat tensor");
  if (flat.form == Storage::Form::meta || target.form == Storage::Form::meta || target.numel == 0) {
    return;
  }
  if (flat.form == Storage::Form::uniform) {
    target.set_uniform(flat.value);
    return;
  }
  copy_elements(target, 0, flat, offset, target.numel);
  target.collapse_if_uniform();
}

}  // namespace

Tensor flatten(std::span<const Tensor> tensors) {
  expects(!tensors.empty(), "a flat tensor is made of at least one");
  std::int64_t numel = 0;
  bool is_meta = false;
  for (const Tensor& tensor : tensors) {
    numel += tensor.numel();
    is_meta = is_meta || tensor.is_meta();
  }
  const Tensor& first = tensors.front();
  if (is_meta) {
    return Tensor::meta({numel}, first.dtype(), first.device());
  }
  Tensor flat = Tensor::zeros({numel}, first.dtype(), first.device());
  if (all_uniform_alike(tensors)) {
    flat.storage()->value = first.storage()->value;
    return flat;
  }
  std::int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    copy_elements(*flat.storage(), offset, *tensor.settle().storage(), 0, tensor.numel());
    offset += tensor.numel();
  }
  flat.storage()->collapse_if_uniform();
  return flat;
}

void unflatten_from(const Tensor& flat, std::int64_t offset, const Tensor& target) {
  copy_from_flat(*flat.settle().storage(), offset, *target.settle().storage());
}

void unflatten(const Tensor& flat, std::span<const Tensor> tensors) {
  std::int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    copy_from_flat(*flat.settle().storage(), offset, *tensor.settle().storage());
    offset += tensor.numel();
  }
}

Tensor slice(const Tensor& flat, std::int64_t offset, const Shape& shape) {
  if (flat.is_meta()) {
    return Tensor::meta(shape, flat.dtype(), flat.device());
  }
  Tensor part = Tensor::zeros(shape, flat.dtype(), flat.device());
  copy_from_flat(*flat.settle().storage(), offset, *part.storage());
  return part;
}

Tensor int_tensor(std::span<const std::int32_t> values, Device device) {
  const std::vector<double> numbers(values.begin(), values.end());  // exact: 32 bits
  return Tensor::of(numbers, Dtype::int32, device);
}

}  // namespace rollcall
