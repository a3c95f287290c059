#ifdef ROLLCALL_HAS_NCCL

#include "real/nccl/nccl_api.h"

#include <fmt/core.h>

#include "real/nccl/shared_library.h"

namespace rollcall::real {
namespace {

SharedLibrary open_cuda() { return open_gpu_library(fmt::format("libcudart.so.{}", CUDART_VERSION / 1000)); }
SharedLibrary open_nccl() { return open_gpu_library("libnccl.so.2"); }

}  // namespace

CudaApi load_cuda() {
  const SharedLibrary library = open_cuda();
  CudaApi api;
  api.library = library.name();
  library.find("cudaRuntimeGetVersion", api.runtime_version);
  library.find("cudaGetDeviceCount", api.get_device_count);
  library.find("cudaGetErrorString", api.error_string);
  library.find("cudaSetDevice", api.set_device);
  library.find("cudaMalloc", api.malloc);
  library.find("cudaFree", api.free);
  library.find("cudaMemcpyAsync", api.memcpy_async);
  library.find("cudaMemsetAsync", api.memset_async);
  library.find("cudaStreamCreateWithFlags", api.stream_create);
  library.find("cudaMallocHost", api.malloc_host);
  library.find("cudaStreamWaitEvent", api.stream_wait_event);
  library.find("cudaEventCreateWithFlags", api.event_create);
  library.find("cudaEventRecord", api.event_record);
  library.find("cudaEventQuery", api.event_query);
  library.find("cudaEventElapsedTime", api.event_elapsed);
  library.find("cudaLaunchHostFunc", api.launch_host_function);
  return api;
}

CudaGraphApi load_cuda_graphs() {
  const SharedLibrary library = open_cuda();
  CudaGraphApi api;
  library.find("cudaStreamSynchronize", api.stream_synchronize);
  library.find("cudaStreamBeginCapture", api.begin_capture);
  library.find("cudaStreamEndCapture", api.end_capture);
  library.find("cudaGraphInstantiateWithFlags", api.instantiate);
  library.find("cudaGraphLaunch", api.launch);
  return api;
}

bool is_stand_in() { return open_nccl().has("rollcallStandIn"); }

void* find_nccl_function(const char* name) {
  void (*function)() = nullptr;
  open_nccl().find(name, function);
  return reinterpret_cast<void*>(function);
}

NcclApi load_nccl() {
  const SharedLibrary library = open_nccl();
  NcclApi api;
  api.library = library.name();
  library.find("ncclGetVersion", api.get_version);
  library.find("ncclGetErrorString", api.error_string);
  library.find("ncclGetUniqueId", api.get_unique_id);
  library.find("ncclCommInitRankConfig", api.comm_init);
  library.find("ncclCommGetAsyncError", api.async_error);
  library.find("ncclCommAbort", api.comm_abort);
  library.find("ncclCommFinalize", api.comm_finalize);
  library.find("ncclCommDestroy", api.comm_destroy);
  library.find("ncclGroupStart", api.group_start);
  library.find("ncclGroupEnd", api.group_end);
  library.find("ncclAllReduce", api.all_reduce);
  library.find("ncclBroadcast", api.broadcast);
  library.find("ncclReduce", api.reduce);
  library.find("ncclAllGather", api.all_gather);
  library.find("ncclReduceScatter", api.reduce_scatter);
  library.find("ncclSend", api.send);
  library.find("ncclRecv", api.recv);
  return api;
}

}  // namespace rollcall::real

#endif
