// The part of the CUDA driver that rollcall calls: which GPUs there are, and a kernel that only takes time.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/stand_in/rules.h"
#include "tests/stand_in/stream.h"

using namespace rollcall::stand_in;

namespace {

struct Image {
  std::string text;
};

struct Kernel {
  std::string name;
};

CUresult copy_text(char* into, int size, const std::string& text) {
  std::snprintf(into, static_cast<std::size_t>(size), "%s", text.c_str());
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  return copy_text(name, size, "stand-in, not a GPU");
}

CUresult cuDeviceGetPCIBusId(char* place, int size, CUdevice device) {
  return copy_text(place, size, "0000:0" + std::to_string(device) + ":00.0");
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  enter();
  const std::string text = static_cast<const char*>(image);
  if (text.find(".version") == std::string::npos || text.find(".entry") == std::string::npos) {
    return CUDA_ERROR_INVALID_PTX;
  }
  *module = reinterpret_cast<CUmodule>(new Image{text});
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  enter();
  if (reinterpret_cast<const Image*>(module)->text.find(std::string(".entry ") + name) == std::string::npos) {
    return CUDA_ERROR_NOT_FOUND;
  }
  *function = reinterpret_cast<CUfunction>(new Kernel{name});
  return CUDA_SUCCESS;
}

// The only kernel that it can run takes as many nanoseconds as its argument says.
CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream handle, void** arguments, void**) {
  enter();
  require(reinterpret_cast<const Kernel*>(function)->name == "spin",
          "a kernel that the stand-in does not know");
  long long nanoseconds = 0;
  std::memcpy(&nanoseconds, arguments[0], sizeof nanoseconds);
  stream_of(handle)->push(
      [nanoseconds] { std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds)); });
  return CUDA_SUCCESS;
}
}
