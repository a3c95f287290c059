#pragma once

// The programs of two ranks that run on both sides, and the outcomes that real backends may have.

#include <span>
#include <string_view>

#include "sim/c10d/op.h"

namespace rollcall::prove {

struct Program {
  std::string_view name;
  // How a rank may end on GPUs: "completes", "hangs", ... The usual outcome is the simulator's.
  std::string_view on_gpus;  // several with '|'
  void (*body)(Rank rank);
};

// Each is wrong in one thing. None of these errors is reported as such: NCCL's kernels compare step numbers and nothing
// else, Gloo compares sizes of messages.
std::span<const Program> wrong_programs();

// Their results must equal the simulator's, bit for bit.
std::span<const Program> right_programs();

}  // namespace rollcall::prove
