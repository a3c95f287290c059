#include "scenarios/run/tensor_text.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace rollcall::scenario {
namespace {

// torch's defaults for printing.
constexpr std::int64_t summarize_above = 1000;
constexpr std::int64_t edge_items = 3;

// repr("1") is "1.0".
std::string with_point(std::string number) {
  return number.find_first_not_of("-0123456789") == std::string::npos ? number + ".0" : number;
}

std::string element_text(const Storage& storage, std::int64_t index, bool is_repr) {
  const Bits bits = storage.at(index);
  if (storage.dtype == Dtype::boolean) {
    return bits != 0 ? "True" : "False";
  }
  if (is_floating(storage.dtype)) {
    // The shortest digits that read back as the same number; an exponent from 1e16 on and below 1e-4:
    // Python's rules.
    std::string number = fmt::format("{}", decode(bits, storage.dtype));
    return is_repr ? with_point(std::move(number)) : number;
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

}  // namespace

std::string tensor_text(const Tensor& tensor, bool is_repr) {
  if (!tensor || tensor.is_meta()) {
    return to_string(tensor);
  }
  const Storage& storage = *tensor.settle().storage();
  return storage.numel == 1
             ? element_text(storage, 0, is_repr)
             : bracketed(storage.numel, [&](std::int64_t i) { return element_text(storage, i, is_repr); });
}

std::string tensor_text(const TensorList& tensors, bool is_repr) {
  return bracketed(std::ssize(tensors), [&](std::int64_t i) {
    return tensor_text(tensors[static_cast<std::size_t>(i)], is_repr);
  });
}

}  // namespace rollcall::scenario
