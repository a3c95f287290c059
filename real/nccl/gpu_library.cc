#include "real/nccl/gpu_library.h"

#include <cstdlib>

namespace rollcall::real {

SharedLibrary open_gpu_library(const std::string& file) {
  if (const char* folder = std::getenv("ROLLCALL_GPU_LIBRARIES"); folder != nullptr && *folder != 0) {
    return SharedLibrary({std::string(folder) + "/" + file});  // from there, or not at all
  }
  return SharedLibrary({file, "/usr/local/cuda/lib64/" + file, "/usr/local/cuda/lib/" + file});
}

}  // namespace rollcall::real
