#include "scenarios/run/tensor_text.h"

#include <cstdint>
#include <utility>

#include <fmt/core.h>

namespace rollcall::scenario {
namespace {

// torch's defaults for printing.
constexpr std::int64_t summarize_above = 1000;
constexpr std::int64_t edge_items = 3;

enum class Style { plain, repr };

// repr("1") is "1.0".
std::string with_point(std::string number) {
  return number.find_first_not_of("-0123456789") == std::string::npos ? number + ".0" : number;
}

std::string element_text(const Storage& storage, std::int64_t index, Style style) {
  const Bits bits = storage.at(index);
  if (storage.dtype == Dtype::boolean) {
    return bits != 0 ? "True" : "False";
  }
  if (is_floating(storage.dtype)) {
    // The shortest digits that read back as the same number; an exponent from 1e16 on and below 1e-4:
    // Python's rules.
    std::string number = fmt::format("{}", decode(bits, storage.dtype));
    return style == Style::repr ? with_point(std::move(number)) : number;
  }
  return std::to_string(decode_integer(bits, storage.dtype));
}

// "[a, b]", with the middle left out if there are too many.
template <typename TextOf>
std::string bracketed(std::int64_t count, TextOf&& text_of) {
  std::string text = "[";
  for (std::int64_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : ", ";
    if (count > summarize_above && i == edge_items) {
      text += "..., ";
      i = count - edge_items;
    }
    text += text_of(i);
  }
  return text + "]";
}

std::string text_of(const Tensor& tensor, Style style) {
  if (!tensor || tensor.is_meta()) {
    return to_string(tensor);
  }
  const Storage& storage = *tensor.settle().storage();
  return storage.numel == 1
             ? element_text(storage, 0, style)
             : bracketed(storage.numel, [&](std::int64_t i) { return element_text(storage, i, style); });
}

std::string text_of(const TensorList& tensors, Style style) {
  return bracketed(static_cast<std::int64_t>(tensors.size()),
                   [&](std::int64_t i) { return text_of(tensors[static_cast<std::size_t>(i)], style); });
}

}  // namespace

std::string tensor_text(const Tensor& tensor) { return text_of(tensor, Style::plain); }
std::string tensor_text(const TensorList& tensors) { return text_of(tensors, Style::plain); }
std::string tensor_repr(const Tensor& tensor) { return text_of(tensor, Style::repr); }
std::string tensor_repr(const TensorList& tensors) { return text_of(tensors, Style::repr); }

}  // namespace rollcall::scenario
