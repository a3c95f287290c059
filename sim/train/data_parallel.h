#pragma once

// DataParallel: one process drives several GPUs (torch/nn/parallel/data_parallel.py). It issues no collective that
// could hang; the problem is memory. In every forward the model is replicated from the output device, the batch is
// scattered from it, and all outputs are gathered on it; the gradients and the optimizer's state live there alone.

#include <cstdint>
#include <vector>

#include "sim/report/device_memory.h"

namespace rollcall {

// All in bytes; the last three per sample.
struct DataParallelOptions {
  std::int64_t gpus = 1;
  std::int64_t output_device = 0;
  std::int64_t batch_size = 1;
  std::int64_t parameters = 0;
  std::int64_t optimizer_state = 0;
  std::int64_t input = 0;
  std::int64_t activations = 0;
  std::int64_t output = 0;
};

// By GPU. The batch is split as by torch.chunk: equal parts, rounded up, until nothing is left.
std::vector<DeviceMemory> data_parallel_memory(const DataParallelOptions& options);

}  // namespace rollcall
