#include "sim/tensor/elements.h"

#include <algorithm>
#include <cstring>

#include "sim/base/expects.h"

namespace rollcall {

void fill_elements(std::span<std::byte> bytes, Bits value, std::size_t size) {
  if (bytes.empty()) {
    return;
  }
  std::memcpy(bytes.data(), &value, size);
  for (std::size_t written = size; written < bytes.size();
       written *= 2) {  // the written part doubles each time
    std::memcpy(bytes.data() + written, bytes.data(), std::min(written, bytes.size() - written));
  }
}

void copy_elements(Storage& target, std::int64_t to, const Storage& source, std::int64_t from,
                   std::int64_t count) {
  expects(target.dtype == source.dtype && count >= 0 && count <= source.numel - from &&
              count <= target.numel - to,
          "elements are copied inside two tensors of one dtype");
  const std::size_t size = size_of(target.dtype);
  const std::span bytes(target.make_dense() + static_cast<std::size_t>(to) * size,
                        static_cast<std::size_t>(count) * size);
  if (source.form == Storage::Form::dense) {
    std::memmove(bytes.data(), source.elements.data() + static_cast<std::size_t>(from) * size, bytes.size());
  } else {
    fill_elements(bytes, source.value, size);
  }
}

}  // namespace rollcall
