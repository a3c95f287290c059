#include "sim/train/grad_norm.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/error.h"

namespace rollcall {

void check_norm_type(double type) {
  if (type != 1 && type != 2 && !std::isinf(type)) {
    throw ValueError(fmt::format("norms of type 1, 2 and inf are simulated, not of type {}", type));
  }
}

double norm_power(const Tensor& tensor, double type) {
  double sum = 0;
  if (tensor.is_meta()) {
    return sum;
  }
  const Storage& storage = *tensor.settle().storage();
  const bool is_uniform = storage.form == Storage::Form::uniform;
  const std::int64_t count = is_uniform ? std::min<std::int64_t>(storage.numel, 1) : storage.numel;
  for (std::int64_t i = 0; i < count; ++i) {
    const double size = std::abs(decode(storage.at(i), storage.dtype));
    sum = std::isinf(type) ? std::max(sum, size) : sum + (type == 2 ? size * size : size);
  }
  return is_uniform && !std::isinf(type) ? sum * static_cast<double>(storage.numel) : sum;
}

double norm_of_power(double power, double type) { return type == 2 ? std::sqrt(power) : power; }

void scale_gradients(std::span<const Tensor> gradients, double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  for (const Tensor& gradient : gradients) {
    gradient.mul_(std::min(factor, 1.0));
  }
}

}  // namespace rollcall
