#pragma once

// Finds out which parts of NCCL and CUDA this machine has. It does so in a separate process: a process that has
// touched CUDA can no longer fork ranks.

#include <string>

namespace rollcall::real {

struct GpuProbe {
  std::string nccl_headers;  // that this rollcall was built with: "2.28.9"; empty: none
  std::string nccl_library;  // "2.28.9 (libnccl.so.2)", or why there is none
  std::string cuda_runtime;  // likewise
  std::string driver;        // likewise
  int gpus = 0;
  std::string gpu_names;     // "NVIDIA H200 at 0000:1B:00.0", one after the other; may be empty
  bool is_stand_in = false;  // the libraries are those of rollcall's tests: they prove nothing about NCCL
  std::string problem;       // the first obstacle that keeps NCCL from running, in one line; empty: none
};

GpuProbe probe_gpus();

}  // namespace rollcall::real
