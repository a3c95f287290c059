#pragma once

#include <string>

#include "real/process/shared_library.h"

namespace rollcall::real {

// Opens a library of CUDA or NCCL: from the folder in ROLLCALL_GPU_LIBRARIES if it is set, or from the loader's usual
// places, or from where NVIDIA's installer puts them.
SharedLibrary open_gpu_library(const std::string& file);

}  // namespace rollcall::real
