#ifdef ROLLCALL_HAS_NCCL

#include "real/nccl/device_tensors.h"

#include <algorithm>
#include <cstring>

namespace rollcall::real {

void DeviceTensors::use(Storage& tensor, cudaStream_t stream, std::int64_t call,
                        std::vector<MemoryPool::Block>& staging) {
  const auto bytes = static_cast<std::size_t>(tensor.bytes());
  Place& place = places_.try_emplace(&tensor).first->second;
  if (!place.tensor) {
    place.tensor = Tensor::share(tensor);
    place.memory = gpu_.memory.take(bytes);
  }
  if (!place.is_current) {
    place.is_current = true;
    tensor.begin_use();
    if (bytes > 0) {
      staging.push_back(gpu_.pinned.take(bytes));
      std::memcpy(staging.back().memory, tensor.make_dense(), bytes);
      tensor.collapse_if_uniform();
      libraries_.check(libraries_.cuda.memcpy_async(place.memory.memory, staging.back().memory, bytes,
                                                    cudaMemcpyHostToDevice, stream));
    }
  }
  if (place.users.empty() || place.users.back() != call) {
    place.users.push_back(call);
  }
}

const std::vector<std::int64_t>& DeviceTensors::users(Storage& tensor) {
  static const std::vector<std::int64_t> nobody;
  const auto found = places_.find(&tensor);
  return found == places_.end() ? nobody : found->second.users;
}

void DeviceTensors::download(Storage& tensor, cudaStream_t stream, const std::function<void()>& wait) {
  const auto found = places_.find(&tensor);
  if (found == places_.end() || !found->second.is_current) {
    return;
  }
  Place& place = found->second;
  const auto bytes = static_cast<std::size_t>(tensor.bytes());
  const MemoryPool::Block arriving = gpu_.pinned.take(bytes);
  if (bytes > 0) {
    libraries_.check(libraries_.cuda.memcpy_async(arriving.memory, place.memory.memory, bytes,
                                                  cudaMemcpyDeviceToHost, stream));
  }
  wait();
  if (bytes > 0) {
    std::memcpy(tensor.make_dense(), arriving.memory, bytes);
    tensor.collapse_if_uniform();
    gpu_.pinned.give_back(arriving);
  }
  place.users.clear();
  place.is_current = false;
  tensor.end_use();
}

void DeviceTensors::sweep(const std::function<bool(std::int64_t call)>& is_over) {
  if (places_.size() < sweep_at_) {
    return;
  }
  for (auto entry = places_.begin(); entry != places_.end();) {
    auto& [storage, place] = *entry;
    std::erase_if(place.users, is_over);
    const std::uint32_t own = place.is_current ? 2 : 1;
    if (!place.users.empty() || storage->references.load() > own) {
      ++entry;
      continue;
    }
    gpu_.memory.give_back(place.memory);
    if (place.is_current) {
      storage->end_use();  // `place` keeps it alive until it is erased
    }
    entry = places_.erase(entry);
  }
  sweep_at_ = std::max<std::size_t>(256, 2 * places_.size());
}

}  // namespace rollcall::real

#endif
