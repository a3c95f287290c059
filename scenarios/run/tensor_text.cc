#include "scenarios/run/tensor_text.h"

#include <cstdint>

#include <fmt/format.h>

namespace rollcall::scenario {
namespace {

// torch's defaults for printing.
constexpr std::int64_t summarize_above = 1000;
constexpr std::int64_t edge_items = 3;

std::string element_text(const Storage& storage, std::int64_t index) {
  const Bits bits = storage.at(index);
  if (storage.dtype == Dtype::boolean) {
    return bits != 0 ? "True" : "False";
  }
  if (is_floating(storage.dtype)) {
    // The shortest digits that read back the same; an exponent from 1e16 on and below 1e-4: Python's rules.
    return fmt::format("{}", decode(bits, storage.dtype));
  }
  return std::to_string(decode_integer(bits, storage.dtype));
}

}  // namespace

std::string tensor_text(const Tensor& tensor) {
  if (!tensor || tensor.is_meta()) {
    return to_string(tensor);
  }
  const Storage& storage = *tensor.storage();
  if (storage.numel == 1) {
    return element_text(storage, 0);
  }
  std::string text = "[";
  for (std::int64_t i = 0; i < storage.numel; ++i) {
    text += i == 0 ? "" : ", ";
    if (storage.numel > summarize_above && i == edge_items) {
      text += "..., ";
      i = storage.numel - edge_items;
    }
    text += element_text(storage, i);
  }
  return text + "]";
}

std::string tensor_text(const TensorList& tensors) {
  std::string text = "[";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += tensor_text(tensors[i]);
  }
  return text + "]";
}

}  // namespace rollcall::scenario
