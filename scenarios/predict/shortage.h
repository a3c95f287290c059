#pragma once

// The verdict of a prediction whose ranks need more memory than their GPUs have.

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/cost/roofline.h"

namespace rollcall::predict {

// "does_not_fit", the verdict of FindingKind::gpu_memory.
std::string_view shortage_verdict();

// error[does_not_fit]: rank 3 needs 83.81 GiB, and H100 SXM has 80 GiB: 3.81 GiB are missing
std::string shortage_line(std::string_view who, std::int64_t needed, const cost::Gpu& gpu);

}  // namespace rollcall::predict
