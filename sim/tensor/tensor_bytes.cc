#include "sim/tensor/tensor_bytes.h"

#include <algorithm>
#include <string>

namespace rollcall {

void write_values(Encoder& bytes, const Storage& storage) {
  bytes(storage.dtype, storage.complex, storage.device.type, storage.device.index);
  bytes(static_cast<std::uint32_t>(storage.shape.sizes().size()));
  for (const std::int64_t size : storage.shape.sizes()) {
    bytes(size);
  }
  bytes(storage.numel);
  if (storage.form == Storage::Form::meta) {
    bytes(Storage::Form::meta);
    return;
  }
  // Dense elements may all be equal: the form is not part of a value.
  const Bits first = storage.numel > 0 ? storage.at(0) : Bits{};
  bool is_uniform = true;
  for (std::int64_t i = 1; storage.form == Storage::Form::dense && is_uniform && i < storage.numel; ++i) {
    is_uniform = storage.at(i) == first;
  }
  bytes(is_uniform, first);
  if (!is_uniform) {
    bytes(std::string(reinterpret_cast<const char*>(storage.elements.data()), storage.elements.size()));
  }
}

}  // namespace rollcall
