#include "scenarios/run/watched_tensors.h"

#include <algorithm>

#include "scenarios/run/rank_frame.h"

namespace rollcall::scenario {
namespace {

// Returns a null tensor if the rank has none of this name.
Tensor find_tensor(const RankFrame& frame, const TensorName& name) {
  if (!name.is_list) {
    return frame.tensors[name.slot];
  }
  const TensorList& list = frame.lists[name.slot];
  const auto element = static_cast<std::size_t>(std::max(name.element, 0));
  return element < list.size() ? list[element] : Tensor();
}

double element_of(const Storage& storage, std::int64_t index) {
  const Bits bits = storage.at(index);
  return is_floating(storage.dtype) ? decode(bits, storage.dtype)
                                    : static_cast<double>(decode_integer(bits, storage.dtype));
}

}  // namespace

void WatchedTensors::keep(const RankFrame& frame) {
  for (const WatchedTensor& watched : frame.program().watched) {
    const Tensor tensor = find_tensor(frame, watched.tensor);
    if (tensor && !tensor.is_meta()) {
      kept_.push_back({frame.rank(), watched.name, tensor});
    }
  }
}

std::vector<TensorValue> WatchedTensors::values() const {
  std::vector<TensorValue> values;
  for (const Kept& kept : kept_) {
    const Storage& storage = *kept.tensor.storage();
    const bool is_uniform = storage.form == Storage::Form::uniform;
    TensorValue& value = values.emplace_back();
    value = {kept.rank, kept.name, storage.numel, {}};
    for (std::int64_t i = 0; i < (is_uniform ? std::min<std::int64_t>(storage.numel, 1) : storage.numel);
         ++i) {
      value.elements.push_back(element_of(storage, i));
    }
  }
  std::ranges::stable_sort(values, {}, &TensorValue::rank);
  return values;
}

}  // namespace rollcall::scenario
