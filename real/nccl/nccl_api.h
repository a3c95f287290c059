#pragma once

// The functions of NCCL and of CUDA's runtime that real ranks use, from the libraries on this machine. Only
// their headers are needed to build.

#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace rollcall::real {

struct CudaApi {
  std::string library;
  decltype(cudaRuntimeGetVersion)* runtime_version = nullptr;
  decltype(cudaGetDeviceCount)* get_device_count = nullptr;
  decltype(cudaGetErrorString)* error_string = nullptr;
  decltype(cudaSetDevice)* set_device = nullptr;
  cudaError_t (*malloc)(void**, std::size_t) = nullptr;
  decltype(cudaFree)* free = nullptr;
  decltype(cudaMemcpyAsync)* memcpy_async = nullptr;
  decltype(cudaMemsetAsync)* memset_async = nullptr;
  decltype(cudaStreamCreateWithFlags)* stream_create = nullptr;
  cudaError_t (*malloc_host)(void**, std::size_t) = nullptr;
  decltype(cudaStreamWaitEvent)* stream_wait_event = nullptr;
  decltype(cudaEventCreateWithFlags)* event_create = nullptr;
  decltype(cudaEventRecord)* event_record = nullptr;
  decltype(cudaEventQuery)* event_query = nullptr;
  cudaError_t (*event_elapsed)(float*, cudaEvent_t, cudaEvent_t) = nullptr;
  decltype(cudaLaunchHostFunc)* launch_host_function = nullptr;
};

// The additional functions for graphs, and for waiting for a stream.
struct CudaGraphApi {
  decltype(cudaStreamSynchronize)* stream_synchronize = nullptr;
  decltype(cudaStreamBeginCapture)* begin_capture = nullptr;
  decltype(cudaStreamEndCapture)* end_capture = nullptr;
  cudaError_t (*instantiate)(cudaGraphExec_t*, cudaGraph_t, unsigned long long) = nullptr;
  decltype(cudaGraphLaunch)* launch = nullptr;
};

struct NcclApi {
  std::string library;
  decltype(ncclGetVersion)* get_version = nullptr;
  decltype(ncclGetErrorString)* error_string = nullptr;
  decltype(ncclGetUniqueId)* get_unique_id = nullptr;
  decltype(ncclCommInitRankConfig)* comm_init = nullptr;
  decltype(ncclCommGetAsyncError)* async_error = nullptr;
  decltype(ncclCommAbort)* comm_abort = nullptr;
  decltype(ncclCommFinalize)* comm_finalize = nullptr;
  decltype(ncclCommDestroy)* comm_destroy = nullptr;
  decltype(ncclGroupStart)* group_start = nullptr;
  decltype(ncclGroupEnd)* group_end = nullptr;
  decltype(ncclAllReduce)* all_reduce = nullptr;
  decltype(ncclBroadcast)* broadcast = nullptr;
  decltype(ncclReduce)* reduce = nullptr;
  decltype(ncclAllGather)* all_gather = nullptr;
  decltype(ncclReduceScatter)* reduce_scatter = nullptr;
  decltype(ncclSend)* send = nullptr;
  decltype(ncclRecv)* recv = nullptr;
};

// Throw std::runtime_error with the dynamic loader's reason.
CudaApi load_cuda();
CudaGraphApi load_cuda_graphs();
NcclApi load_nccl();

// True if the libraries are those of rollcall's tests, which say so themselves.
bool is_stand_in();

// A function that not every NCCL has. Throws std::runtime_error if this one lacks it.
void* find_nccl_function(const char* name);
template <typename Function>
Function* nccl_function(const char* name) {
  return reinterpret_cast<Function*>(find_nccl_function(name));
}

}  // namespace rollcall::real
