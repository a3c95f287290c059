#pragma once

// The kernels for registered (symmetric) memory inside one NVLink domain, of NCCL 2.27 and later, with the cost model
// by which NCCL chooses among them. Based on NCCL 2.28.9, src/sym_kernels.cc (src/symmetric.cc in 2.27), whose numbers
// are the same from 2.27.7 to 2.30.7.

#include <optional>
#include <string_view>

#include "sim/cost/topology.h"
#include "sim/cost/tuner.h"

namespace rollcall::cost {

struct SymmetricChoice {
  std::string_view kernel;  // NCCL's name without the function: "AGxLL_R"
  bool is_ll = false;
  int blocks = 0;
  double time = 0;  // microseconds, as NCCL estimates it
};

// Empty where no such kernel runs: several nodes, other functions, types or operations.
std::optional<SymmetricChoice> choose_symmetric(const Communicator& communicator, const Request& request);

}  // namespace rollcall::cost
