#pragma once

// What NCCL's operators do to NCCL's types (nccl.h), in the order of ranks, each step rounded to the type.

#include <cstddef>
#include <vector>

#include <nccl.h>

namespace rollcall::stand_in {

std::size_t size_of(ncclDataType_t type);  // 0: unknown
// The value of a 16-bit floating element.
double to_number(ncclDataType_t type, const std::byte* element);

// A rank's part of a reduction. `factor`: what its values are multiplied with first, where `scales`.
struct Summand {
  const std::byte* values = nullptr;
  double factor = 1;
};

// `into` is nobody's input.
void reduce(ncclDataType_t type, ncclRedOp_t op, bool scales, const std::vector<Summand>& from,
            std::byte* into, std::size_t count);

}  // namespace rollcall::stand_in
