#include "real/nccl/shared_library.h"

#include <cstdlib>

#include <dlfcn.h>

namespace rollcall::real {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  std::string reason;
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    reason = reason.empty() ? ::dlerror() : reason;  // the loader's usual places come first
  }
  throw std::runtime_error(reason);
}

bool SharedLibrary::has(const char* symbol) const { return ::dlsym(handle_, symbol) != nullptr; }

SharedLibrary::Symbol SharedLibrary::find(const char* symbol) const {
  void* address = ::dlsym(handle_, symbol);
  if (address == nullptr) {
    throw std::runtime_error(name_ + " has no " + symbol);
  }
  return {address};
}

SharedLibrary open_gpu_library(const std::string& file) {
  if (const char* folder = std::getenv("ROLLCALL_GPU_LIBRARIES"); folder != nullptr && *folder != 0) {
    return SharedLibrary({std::string(folder) + "/" + file});  // from there, or not at all
  }
  return SharedLibrary({file, "/usr/local/cuda/lib64/" + file, "/usr/local/cuda/lib/" + file});
}

}  // namespace rollcall::real
