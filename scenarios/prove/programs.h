#pragma once

// Programs of two ranks that are wrong in one thing each, and what real backends may make of them. None of these
// mistakes is reported as such: NCCL's kernels compare step numbers and nothing else, Gloo compares sizes of messages.

#include <span>
#include <string_view>

#include "sim/dist/op.h"

namespace rollcall::prove {

struct Mistake {
  std::string_view name;
  // How a rank may fare on NCCL: "completes", "hangs", ... The usual one is what the simulator says.
  std::string_view on_nccl;  // several with '|'
  void (*body)(Rank rank);
};

std::span<const Mistake> mistakes();

// Programs that are right: their results must be the simulator's, bit by bit.
std::span<const Mistake> right_programs();

}  // namespace rollcall::prove
