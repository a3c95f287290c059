#include "sim/train/flat.h"

#include <algorithm>
#include <optional>

#include "sim/base/error.h"
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

void require_real(const Tensor& tensor) {
  if (tensor.is_complex()) {
    throw NotImplementedError("rollcall: sharded parameters of complex types are not simulated");
  }
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

namespace {

// As an element of `dtype`; empty if there is none.
std::optional<Bits> common_value(std::span<const Tensor> tensors, Dtype dtype) {
  std::optional<Bits> common;
  for (const Tensor& tensor : tensors) {
    const Storage& storage = *tensor.settle().storage();
    if (storage.numel == 0) {
      continue;
    }
    if (storage.form != Storage::Form::uniform) {
      return std::nullopt;
    }
    const Bits value =
        storage.dtype == dtype ? storage.value : encode(decode(storage.value, storage.dtype), dtype);
    if (common && *common != value) {
      return std::nullopt;
    }
    common = value;
  }
  return common.value_or(0);
}

}  // namespace

bool fill_if_alike(const Tensor& flat, std::span<const Tensor> tensors) {
  const std::optional<Bits> value = common_value(tensors, flat.dtype());
  if (value && !flat.is_meta()) {
    flat.storage()->set_uniform(*value);
    return true;
  }
  return false;
}

void fill_flat(const Tensor& flat, std::span<const FlatPiece> pieces) {
  Storage& target = *flat.settle().storage();
  target.set_uniform(0);
  const Tensor* source = nullptr;  // pieces of one tensor are consecutive, so it is cast once
  Tensor cast;
  for (const FlatPiece& piece : pieces) {
    if (piece.source != source) {
      source = piece.source;
      cast = source->dtype() == flat.dtype() ? *source : source->to(flat.dtype());
    }
    copy_elements(target, piece.to, *cast.settle().storage(), piece.from, piece.count);
  }
  target.collapse_if_uniform();
}

const Tensor& reuse(Tensor& tensor, std::int64_t numel, Dtype dtype, Device device, bool is_meta) {
  const bool fits = tensor && !tensor.is_meta() && tensor.numel() == numel && tensor.dtype() == dtype &&
                    tensor.device() == device &&
                    tensor.storage()->references.load(std::memory_order_relaxed) == 1;
  if (is_meta || !fits) {
    tensor = is_meta ? Tensor::meta({numel}, dtype, device) : Tensor::zeros({numel}, dtype, device);
  }
  return tensor;
}

void divide(const Tensor& tensor, double divisor) {
  Storage& storage = *tensor.settle().storage();
  const auto quotient = [&](Bits bits) {
    return encode(decode(bits, storage.dtype) / divisor, storage.dtype);
  };
  if (storage.form == Storage::Form::meta) {
    return;
  }
  if (storage.form == Storage::Form::uniform) {
    storage.set_uniform(quotient(storage.value));
    return;
  }
  for (std::int64_t i = 0; i < storage.numel; ++i) {
    storage.set_at(i, quotient(storage.at(i)));
  }
}

Tensor slice(const Tensor& flat, std::int64_t offset, const Shape& shape) {
  Tensor part = flat.new_zeros(shape);
  if (!flat.is_meta()) {
    copy_from_flat(*flat.settle().storage(), offset, *part.storage());
  }
  return part;
}

Tensor int_tensor(std::span<const std::int32_t> values, Device device) {
  const std::vector<double> numbers(values.begin(), values.end());  // exact: 32 bits
  return Tensor::of(numbers, Dtype::int32, device);
}

}  // namespace rollcall
