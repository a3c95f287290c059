// The part of the CUDA runtime that rollcall calls, according to its documentation (CUDA Runtime API: Stream
// Management, Event Management, Memory Management; "API synchronization behavior"). Other functions are not exported.

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/stand_in/memory.h"
#include "tests/stand_in/rules.h"
#include "tests/stand_in/stream.h"

namespace rollcall::stand_in {
namespace {

struct Event {
  bool has_time = false;
  SharedPoint point;  // null: not recorded
};

struct Events {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<Event>> open;
};

Events& events() {
  static auto* const single = new Events;
  return *single;
}

std::shared_ptr<Event> event_of(const void* handle) {
  const std::lock_guard lock(events().mutex);
  const auto found = events().open.find(handle);
  require(found != events().open.end(), "an event was used that does not exist, or no longer");
  return found->second;
}

struct Graph {
  std::vector<Task> tasks;
};

// Returns a stream that the caller is about to use.
std::shared_ptr<Stream> usable(cudaStream_t handle) {
  enter();
  require(handle != nullptr, "the default stream was used, which waits for all others");
  std::shared_ptr<Stream> stream = stream_of(handle);
  require(
      !stream->is_held(),
      "a stream was used before NCCL had issued its kernel there: a communicator was still ncclInProgress");
  return stream;
}

void check_range(const void* address, std::size_t bytes, bool must_be_device) {
  if (is_device_memory(address)) {
    require(must_be_device, "a copy took a GPU's memory for the host's");
    require(device_of(address, bytes) >= 0,
            "a copy went beyond an allocation of the GPU, or into freed memory");
  } else {
    require(!must_be_device, "a copy took the host's memory for a GPU's");
  }
}

}  // namespace
}  // namespace rollcall::stand_in

using namespace rollcall::stand_in;

extern "C" {

// Tells callers that this is not CUDA: no time measured here is a GPU's.
int rollcallStandIn() { return 1; }

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  enter();
  *count = device_count();
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    default:
      return "invalid argument";
  }
}

cudaError_t cudaSetDevice(int device) {
  enter();
  if (device < 0 || device >= device_count()) {
    return cudaErrorInvalidDevice;
  }
  set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  enter();
  *address = bytes > 0 ? allocate(bytes, current_device()) : nullptr;
  return cudaSuccess;
}

// Waits for all of the GPU's work.
cudaError_t cudaFree(void* address) {
  enter();
  if (address != nullptr) {
    cudaDeviceSynchronize();
    release(address);
  }
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** address, size_t bytes) {
  enter();
  *address = allocate_pinned(bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* address) {
  enter();
  if (address != nullptr) {
    cudaDeviceSynchronize();
    release_pinned(address);
  }
  return cudaSuccess;
}

// Pageable memory is copied through the runtime's own memory: the host first waits for the stream, and for a copy to
// the host it also waits for the copy.
cudaError_t cudaMemcpyAsync(void* into, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  const std::shared_ptr<Stream> stream = usable(handle);
  if (bytes == 0) {
    return cudaSuccess;
  }
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool into_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  check_range(from, bytes, from_device);
  check_range(into, bytes, into_device);
  const void* const source = from_device ? bytes_of(from) : from;
  void* const target = into_device ? bytes_of(into) : into;
  const auto copy = [target, source, bytes] { std::memcpy(target, source, bytes); };
  const bool is_pageable =
      (!from_device && !is_pinned(from, bytes)) || (!into_device && !is_pinned(into, bytes));
  if (!is_pageable) {
    stream->push(copy);
    return cudaSuccess;
  }
  require(!stream->is_capturing(), "pageable memory was copied while a stream is captured");
  stream->wait_until_idle();
  copy();
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t handle) {
  const std::shared_ptr<Stream> stream = usable(handle);
  if (bytes > 0) {
    check_range(address, bytes, true);
    stream->push([target = bytes_of(address), value, bytes] { std::memset(target, value, bytes); });
  }
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  enter();
  require(flags == cudaStreamNonBlocking, "a stream was made that waits for the default stream");
  auto stream = std::make_shared<Stream>(current_device());
  *handle = reinterpret_cast<cudaStream_t>(stream.get());
  add_stream(std::move(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  usable(handle);
  Stream::close(take_stream(handle));
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return usable(handle)->is_idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const std::shared_ptr<Stream> stream = usable(handle);
  require(!stream->is_capturing(), "the host waited for a stream that is captured");
  stream->wait_until_idle();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  enter();
  for (const std::shared_ptr<Stream>& stream : all_streams()) {
    if (stream->device() == current_device()) {
      stream->wait_until_idle();
    }
  }
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  enter();
  auto event = std::make_shared<Event>();
  event->has_time = (flags & cudaEventDisableTiming) == 0;
  const std::lock_guard lock(events().mutex);
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  events().open[event.get()] = event;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  enter();
  event_of(handle);
  const std::lock_guard lock(events().mutex);
  events().open.erase(handle);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  const std::shared_ptr<Event> event = event_of(handle);
  const auto point = event->point = std::make_shared<Point>();
  usable(stream)->push([point] { point->pass(); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  enter();
  const std::shared_ptr<Event> event = event_of(handle);
  return event->point == nullptr || event->point->is_passed() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  enter();
  if (const SharedPoint point = event_of(handle)->point) {
    point->wait();
  }
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  enter();
  const std::shared_ptr<Event> first = event_of(start);
  const std::shared_ptr<Event> last = event_of(end);
  if (!first->has_time || !last->has_time || first->point == nullptr || last->point == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (!first->point->is_passed() || !last->point->is_passed()) {
    return cudaErrorNotReady;
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(last->point->time() - first->point->time()).count();
  return cudaSuccess;
}

// Waits for what has been recorded by now; for an event that was never recorded, it does not wait.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const SharedPoint point = event_of(event)->point) {
    usable(stream)->push([point] { point->wait(); });
  }
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  usable(stream)->push([function, data] {
    const HostFunction inside;
    function(data);
  });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  usable(stream)->begin_capture();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const std::shared_ptr<Stream> stream = usable(handle);
  require(stream->is_capturing(), "a capture was ended that had not begun");
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{stream->end_capture()});
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  enter();
  *executable = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<const Graph*>(graph)));
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  const std::shared_ptr<Stream> stream = usable(handle);
  for (const Task& task : reinterpret_cast<const Graph*>(executable)->tasks) {
    stream->push(task);
  }
  return cudaSuccess;
}
}
