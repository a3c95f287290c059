#pragma once

// Gpu: a rank's GPU. Its streams and events, memory that is given back without a wait, and a kernel that takes time.
// Nothing here makes the host wait for what the GPU has to do: cudaFree would, and copies from and to pageable memory.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "real/nccl/nccl_api.h"
#include "sim/base/time.h"
#include "sim/c10d/stream.h"

namespace rollcall::real {

struct NcclLibraries {
  CudaApi cuda = load_cuda();
  NcclApi nccl = load_nccl();

  // Throw what torch throws: RuntimeError for CUDA's failures, DistBackendError for NCCL's.
  void check(cudaError_t result) const;
  void check(ncclResult_t result) const;
};

// A thread that asks again and again: often at first, and then not so often that it keeps a processor busy.
class Patience {
 public:
  void pause();

 private:
  std::chrono::nanoseconds next_ = std::chrono::microseconds(50);
};

// Memory in powers of two, which is used again instead of freed.
class MemoryPool {
 public:
  using Allocate = cudaError_t (*)(void**, std::size_t);
  MemoryPool(const NcclLibraries& libraries, Allocate allocate)
      : libraries_(libraries), allocate_(allocate) {}

  struct Block {
    void* memory = nullptr;
    std::size_t size = 0;  // 0: nothing
  };
  Block take(std::size_t bytes);
  // Whatever used it is over.
  void give_back(const Block& block);

 private:
  const NcclLibraries& libraries_;
  Allocate allocate_;
  std::map<std::size_t, std::vector<void*>> free_;
};

class Gpu {
 public:
  // Of the calling thread, from now on. Calls are of one thread, but for event queries.
  Gpu(const NcclLibraries& libraries, int device);

  cudaStream_t stream(Stream stream);
  cudaStream_t new_stream() const;
  // Used again once it is given back; `event` has no owner but the caller.
  cudaEvent_t take_event();
  void give_back(cudaEvent_t event) { events_.push_back(event); }
  cudaEvent_t record(cudaStream_t stream);
  bool has_passed(cudaEvent_t event) const;
  // Between two that have passed.
  Duration elapsed(cudaEvent_t from, cudaEvent_t to) const;

  // The stream is busy for that long: with a kernel that looks at the GPU's timer, or, where the driver has no
  // compiler for it, with a function of the host's that sleeps.
  void spin(cudaStream_t stream, Duration duration);
  bool has_kernel() const { return kernel_ != nullptr; }

  MemoryPool memory;  // the GPU's
  MemoryPool pinned;  // the host's, as copies need it that do not wait

 private:
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                         void**, void**);
  void load_kernel();

  const NcclLibraries& libraries_;
  std::array<cudaStream_t, streams_per_rank> streams_{};  // by id; null: not used yet
  std::vector<cudaEvent_t> events_;                       // that nobody uses
  void* kernel_ = nullptr;                                // null: none
  Launch launch_ = nullptr;
};

}  // namespace rollcall::real
