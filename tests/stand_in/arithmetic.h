#pragma once

// Computes NCCL's operators on NCCL's types (nccl.h), in rank order, rounding each step to the type.

#include <cstddef>
#include <vector>

#include <nccl.h>

namespace rollcall::stand_in {

std::size_t size_of(ncclDataType_t type);  // 0: unknown
// Returns the value of a 16-bit floating-point element.
double to_number(ncclDataType_t type, const std::byte* element);

// A rank's part of a reduction. With `scales`, its values are first multiplied by `factor`.
struct Summand {
  const std::byte* values = nullptr;
  double factor = 1;
};

// `into` must not be an input.
void reduce(ncclDataType_t type, ncclRedOp_t op, bool scales, const std::vector<Summand>& from,
            std::byte* into, std::size_t count);

}  // namespace rollcall::stand_in
