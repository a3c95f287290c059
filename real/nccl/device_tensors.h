#pragma once

// DeviceTensors: where a rank's tensors are on its GPU. A tensor moves there with the first call that uses it and stays
// until the host reads it (Storage::pending says that it must ask), or until no reference to it is left.

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <vector>

#include "real/nccl/gpu.h"
#include "sim/tensor/tensor.h"

namespace rollcall::real {

class DeviceTensors {
 public:
  DeviceTensors(const NcclLibraries& libraries, Gpu& gpu) : libraries_(libraries), gpu_(gpu) {}

  // Gives the tensor a place on the GPU, for the call with the number `call`. Its values are there once `stream` has
  // got this far. They are copied from pinned memory, which is added to `staging` and must stay until the call is over.
  void use(Storage& tensor, cudaStream_t stream, std::int64_t call, std::vector<MemoryPool::Block>& staging);
  // Where a tensor in use is.
  void* address_of(Storage& tensor) const { return places_.at(&tensor).memory.memory; }

  // The calls that use the tensor, as far as is known.
  const std::vector<std::int64_t>& users(Storage& tensor);
  // No call uses it anymore: copies it to the host. `wait` returns when `stream` has got as far as the copy.
  void download(Storage& tensor, cudaStream_t stream, const std::function<void()>& wait);

  // Frees the memory of tensors that have no other references and that no call uses.
  void sweep(const std::function<bool(std::int64_t call)>& is_over);

 private:
  struct Place {
    Tensor tensor;  // kept while it has memory
    MemoryPool::Block memory{};
    bool is_current = false;  // the GPU has the values, the host does not
    std::vector<std::int64_t> users{};
  };

  const NcclLibraries& libraries_;
  Gpu& gpu_;
  std::unordered_map<Storage*, Place> places_;
  std::size_t sweep_at_ = 256;
};

}  // namespace rollcall::real
