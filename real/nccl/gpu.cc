#ifdef ROLLCALL_HAS_NCCL

#include "real/nccl/gpu.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include <fmt/core.h>

#include "real/nccl/gpu_library.h"
#include "real/rank/recorder.h"
#include "sim/base/error.h"

namespace rollcall::real {
namespace {

constexpr std::size_t least_block = 512;

// One thread that exits when the GPU's timer has advanced by as many nanoseconds as its argument says. In PTX, which
// every driver since CUDA 7.5 compiles for every GPU since Maxwell, so nothing is needed at build time.
constexpr const char* spin_kernel = R"(
.version 4.3
.target sm_50
.address_size 64

.visible .entry spin(.param .u64 nanoseconds)
{
  .reg .u64 %wanted, %start, %now;
  .reg .pred %goes_on;

  ld.param.u64 %wanted, [nanoseconds];
  mov.u64 %start, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %goes_on, %now, %wanted;
  @%goes_on bra again;
  ret;
}
)";

void CUDART_CB sleep_on_host(void* nanoseconds) {
  const std::unique_ptr<std::int64_t> owned(static_cast<std::int64_t*>(nanoseconds));
  std::this_thread::sleep_for(std::chrono::nanoseconds(*owned));
}

}  // namespace

void NcclLibraries::check(cudaError_t result) const {
  if (result != cudaSuccess) {
    throw RuntimeError(fmt::format("CUDA error: {}", cuda.error_string(result)));
  }
}

void NcclLibraries::check(ncclResult_t result) const {
  if (result == ncclRemoteError) {
    throw LostPeerError(fmt::format("NCCL error: {}", nccl.error_string(result)));
  }
  if (result != ncclSuccess && result != ncclInProgress) {
    throw Error("torch.distributed.DistBackendError",
                fmt::format("NCCL error: {}", nccl.error_string(result)));
  }
}

void Patience::pause() {
  constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(5);
  std::this_thread::sleep_for(next_);
  next_ = std::min(2 * next_, longest);
}

MemoryPool::Block MemoryPool::take(std::size_t bytes) {
  if (bytes == 0) {
    return {};
  }
  Block block{nullptr, std::bit_ceil(std::max(bytes, least_block))};
  std::vector<void*>& free = free_[block.size];
  if (free.empty()) {
    libraries_.check(allocate_(&block.memory, block.size));
  } else {
    block.memory = free.back();
    free.pop_back();
  }
  return block;
}

void MemoryPool::give_back(const Block& block) {
  if (block.memory != nullptr) {
    free_[block.size].push_back(block.memory);
  }
}

Gpu::Gpu(const NcclLibraries& libraries, int device)
    : memory(libraries, libraries.cuda.malloc),
      pinned(libraries, libraries.cuda.malloc_host),
      libraries_(libraries) {
  libraries_.check(libraries_.cuda.set_device(device));
  load_kernel();
}

cudaStream_t Gpu::new_stream() const {
  cudaStream_t stream = nullptr;
  libraries_.check(libraries_.cuda.stream_create(&stream, cudaStreamNonBlocking));
  return stream;
}

cudaStream_t Gpu::stream(Stream stream) {
  cudaStream_t& known = streams_[stream.id];
  known = known != nullptr ? known : new_stream();
  return known;
}

cudaEvent_t Gpu::record(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  if (events_.empty()) {
    libraries_.check(libraries_.cuda.event_create(&event, cudaEventDefault));
  } else {
    event = events_.back();
    events_.pop_back();
  }
  libraries_.check(libraries_.cuda.event_record(event, stream));
  return event;
}

bool Gpu::has_passed(cudaEvent_t event) const {
  const cudaError_t state = libraries_.cuda.event_query(event);
  if (state != cudaErrorNotReady) {
    libraries_.check(state);
  }
  return state == cudaSuccess;
}

Duration Gpu::elapsed(cudaEvent_t from, cudaEvent_t to) const {
  float milliseconds = 0;
  libraries_.check(libraries_.cuda.event_elapsed(&milliseconds, from, to));
  return static_cast<Duration>(static_cast<double>(milliseconds) * millisecond);
}

// Does not fail if the driver cannot load it: the host sleeps instead.
void Gpu::load_kernel() {
  try {
    const SharedLibrary driver = open_gpu_library("libcuda.so.1");
    int (*load)(void**, const void*) = driver.find("cuModuleLoadData");
    int (*find)(void**, void*, const char*) = driver.find("cuModuleGetFunction");
    launch_ = driver.find("cuLaunchKernel");
    new_stream();  // makes the runtime create the GPU's context, which the driver's functions need
    void* module = nullptr;
    if (load(&module, spin_kernel) != 0 || find(&kernel_, module, "spin") != 0) {
      kernel_ = nullptr;
    }
  } catch (const std::exception&) {
    // there is no kernel
  }
}

void Gpu::spin(cudaStream_t stream, Duration duration) {
  std::int64_t nanoseconds = duration;
  if (kernel_ != nullptr) {
    void* arguments[] = {&nanoseconds};
    if (launch_(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) != 0) {
      throw RuntimeError("CUDA error: a kernel could not be launched");
    }
    return;
  }
  libraries_.check(
      libraries_.cuda.launch_host_function(stream, sleep_on_host, new std::int64_t(nanoseconds)));
}

}  // namespace rollcall::real

#endif
