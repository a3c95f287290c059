#pragma once

// Gpu: a rank's GPU, with its streams and events, memory that is returned without a wait, and a kernel that takes time.
// Nothing here makes the host wait for the GPU, as cudaFree and copies from and to pageable memory would.

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
  CudaApi cuda;
  NcclApi nccl;

  // Throw what torch throws: RuntimeError for errors of CUDA, DistBackendError for errors of NCCL.
  void check(cudaError_t result) const;
  void check(ncclResult_t result) const;
};

// Backoff for a polling thread: it polls often at first, then seldom enough not to keep a processor busy.
class Patience {
 public:
  void pause();

 private:
  std::chrono::nanoseconds next_ = std::chrono::microseconds(50);
};

// Memory blocks with sizes in powers of two, which are reused instead of freed.
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
  // The work that used the block must be over.
  void give_back(const Block& block);

 private:
  const NcclLibraries& libraries_;
  Allocate allocate_;
  std::map<std::size_t, std::vector<void*>> free_;
};

class Gpu {
 public:
  // Makes the device current for the calling thread. All calls must come from one thread, except event queries.
  Gpu(const NcclLibraries& libraries, int device);

  cudaStream_t stream(Stream stream);
  cudaStream_t new_stream() const;
  // The caller owns the event until it gives it back, after which it is reused.
  cudaEvent_t record(cudaStream_t stream);
  void give_back(cudaEvent_t event) { events_.push_back(event); }
  bool has_passed(cudaEvent_t event) const;
  // The time between two events that have passed.
  Duration elapsed(cudaEvent_t from, cudaEvent_t to) const;

  // Keeps the stream busy for that long: with a kernel that polls the GPU's timer, or, if the driver has no
  // compiler for it, with a host function that sleeps.
  void spin(cudaStream_t stream, Duration duration);

  MemoryPool memory;  // the GPU's
  MemoryPool pinned;  // the host's, as asynchronous copies need it

 private:
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                         void**, void**);
  void load_kernel();

  const NcclLibraries& libraries_;
  std::array<cudaStream_t, streams_per_rank> streams_{};  // by id; null: not used yet
  std::vector<cudaEvent_t> events_;                       // unused ones
  void* kernel_ = nullptr;                                // null: none
  Launch launch_ = nullptr;
};

}  // namespace rollcall::real
