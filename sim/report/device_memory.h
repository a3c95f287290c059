#pragma once

#include <cstdint>

namespace rollcall {

// The memory of one GPU at its peak: the end of the forward pass, with the gradients of the last step still there.
struct DeviceMemory {
  std::int64_t samples = 0;     // of the batch
  std::int64_t parameters = 0;  // the model, or its replica
  std::int64_t gradients = 0;
  std::int64_t optimizer_state = 0;
  std::int64_t inputs = 0;  // its part; on the output device the whole batch
  std::int64_t activations = 0;
  std::int64_t outputs = 0;  // its part; on the output device also the gathered whole

  std::int64_t total() const {
    return parameters + gradients + optimizer_state + inputs + activations + outputs;
  }
  friend bool operator==(const DeviceMemory&, const DeviceMemory&) = default;
};

}  // namespace rollcall
