#pragma once

// The programs of two ranks that are run on both sides, and what real backends may make of them.

#include <span>
#include <string_view>

#include "sim/c10d/op.h"

namespace rollcall::prove {

struct Program {
  std::string_view name;
  // How a rank may fare on GPUs: "completes", "hangs", ... The usual one is what the simulator says.
  std::string_view on_gpus;  // several with '|'
  void (*body)(Rank rank);
};

// Wrong in one thing each. None of that is reported as such: NCCL's kernels compare step numbers and nothing else,
// Gloo compares sizes of messages.
std::span<const Program> wrong_programs();

// Their results must be the simulator's, bit by bit.
std::span<const Program> right_programs();

}  // namespace rollcall::prove
