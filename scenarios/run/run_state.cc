#include "scenarios/run/run_state.h"

#include <algorithm>

#include "scenarios/run/rank_frame.h"

namespace rollcall::scenario {

std::vector<std::pair<Rank, double>> Contributions::to(Rank rank, const std::string& tensor) {
  const auto made = latest_.find({rank, tensor});
  std::vector<std::pair<Rank, double>> given;
  if (made == latest_.end() || !told_.insert(made->second.call).second) {
    return given;
  }
  for (const auto& [key, entry] : latest_) {
    const bool is_new = given.empty() || given.back().first != key.first;
    if (entry.call == made->second.call && is_new) {
      given.emplace_back(key.first, entry.value);
    }
  }
  return given;
}

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
      value.elements.push_back(decode(storage.at(i), storage.dtype));
    }
  }
  std::ranges::stable_sort(values, {}, &TensorValue::rank);
  return values;
}

}  // namespace rollcall::scenario
