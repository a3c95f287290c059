#pragma once

// The functions of NCCL and of CUDA's runtime that real ranks use, from the libraries on this machine. Only
// their headers are needed to build.

#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "real/nccl/gpu_library.h"

namespace rollcall::real {

// These, and the structs below, throw std::runtime_error with the dynamic loader's reason.
inline SharedLibrary open_cuda() {
  return open_gpu_library("libcudart.so." + std::to_string(CUDART_VERSION / 1000));
}
inline SharedLibrary open_nccl() { return open_gpu_library("libnccl.so.2"); }

struct CudaApi {
  SharedLibrary library = open_cuda();
  decltype(cudaRuntimeGetVersion)* runtime_version = library.find("cudaRuntimeGetVersion");
  decltype(cudaGetDeviceCount)* get_device_count = library.find("cudaGetDeviceCount");
  decltype(cudaGetErrorString)* error_string = library.find("cudaGetErrorString");
  decltype(cudaSetDevice)* set_device = library.find("cudaSetDevice");
  cudaError_t (*malloc)(void**, std::size_t) = library.find("cudaMalloc");
  decltype(cudaFree)* free = library.find("cudaFree");
  decltype(cudaMemcpyAsync)* memcpy_async = library.find("cudaMemcpyAsync");
  decltype(cudaMemsetAsync)* memset_async = library.find("cudaMemsetAsync");
  decltype(cudaStreamCreateWithFlags)* stream_create = library.find("cudaStreamCreateWithFlags");
  cudaError_t (*malloc_host)(void**, std::size_t) = library.find("cudaMallocHost");
  decltype(cudaStreamWaitEvent)* stream_wait_event = library.find("cudaStreamWaitEvent");
  decltype(cudaEventCreateWithFlags)* event_create = library.find("cudaEventCreateWithFlags");
  decltype(cudaEventRecord)* event_record = library.find("cudaEventRecord");
  decltype(cudaEventQuery)* event_query = library.find("cudaEventQuery");
  cudaError_t (*event_elapsed)(float*, cudaEvent_t, cudaEvent_t) = library.find("cudaEventElapsedTime");
  decltype(cudaLaunchHostFunc)* launch_host_function = library.find("cudaLaunchHostFunc");
};

// The additional functions for graphs, and for waiting for a stream.
struct CudaGraphApi {
  SharedLibrary library = open_cuda();
  decltype(cudaStreamSynchronize)* stream_synchronize = library.find("cudaStreamSynchronize");
  decltype(cudaStreamBeginCapture)* begin_capture = library.find("cudaStreamBeginCapture");
  decltype(cudaStreamEndCapture)* end_capture = library.find("cudaStreamEndCapture");
  cudaError_t (*instantiate)(cudaGraphExec_t*, cudaGraph_t,
                             unsigned long long) = library.find("cudaGraphInstantiateWithFlags");
  decltype(cudaGraphLaunch)* launch = library.find("cudaGraphLaunch");
};

// What only some releases have is looked up in `library` where it is used.
struct NcclApi {
  SharedLibrary library = open_nccl();
  decltype(ncclGetVersion)* get_version = library.find("ncclGetVersion");
  decltype(ncclGetErrorString)* error_string = library.find("ncclGetErrorString");
  decltype(ncclGetUniqueId)* get_unique_id = library.find("ncclGetUniqueId");
  decltype(ncclCommInitRankConfig)* comm_init = library.find("ncclCommInitRankConfig");
  decltype(ncclCommGetAsyncError)* async_error = library.find("ncclCommGetAsyncError");
  decltype(ncclCommAbort)* comm_abort = library.find("ncclCommAbort");
  decltype(ncclCommFinalize)* comm_finalize = library.find("ncclCommFinalize");
  decltype(ncclCommDestroy)* comm_destroy = library.find("ncclCommDestroy");
  decltype(ncclGroupStart)* group_start = library.find("ncclGroupStart");
  decltype(ncclGroupEnd)* group_end = library.find("ncclGroupEnd");
  decltype(ncclAllReduce)* all_reduce = library.find("ncclAllReduce");
  decltype(ncclBroadcast)* broadcast = library.find("ncclBroadcast");
  decltype(ncclReduce)* reduce = library.find("ncclReduce");
  decltype(ncclAllGather)* all_gather = library.find("ncclAllGather");
  decltype(ncclReduceScatter)* reduce_scatter = library.find("ncclReduceScatter");
  decltype(ncclSend)* send = library.find("ncclSend");
  decltype(ncclRecv)* recv = library.find("ncclRecv");
};

}  // namespace rollcall::real
