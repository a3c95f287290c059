#include "sim/train/data_parallel.h"

#include <algorithm>

namespace rollcall {

std::vector<DeviceMemory> data_parallel_memory(const DataParallelOptions& options) {
  const std::int64_t chunk = (options.batch_size + options.gpus - 1) / options.gpus;
  std::vector<DeviceMemory> memory;
  for (std::int64_t gpu = 0; gpu < options.gpus; ++gpu) {
    DeviceMemory& device = memory.emplace_back();
    device.samples = std::clamp<std::int64_t>(options.batch_size - gpu * chunk, 0, chunk);
    const bool is_output_device = gpu == options.output_device;
    // A GPU without samples gets no replica either (data_parallel.py, forward: replicas for the chunks there are).
    device.parameters = device.samples > 0 || is_output_device ? options.parameters : 0;
    device.inputs = device.samples * options.input;
    device.activations = device.samples * options.activations;
    device.outputs = device.samples * options.output;
    if (is_output_device) {
      device.gradients = options.parameters;
      device.optimizer_state = options.optimizer_state;
      device.inputs += options.batch_size * options.input;
      device.outputs += options.batch_size * options.output;
    }
  }
  return memory;
}

}  // namespace rollcall
