#pragma once

// What measurements add to the tuner's expectation: a factor by size, nothing else.
//
// The tuner leaves out what the host pays to launch a call, and is optimistic where a message is too
// large to be latency and too small to fill the pipes. How much was fitted to the published nccl-tests
// tables in tests/data/nccl_tables, once for NVLink machines before Hopper and once for Hopper and later:
// the geometric mean over systems of each system's median ratio, with one imaginary system without error
// among them, so that a class of few systems does not promise much. Machines without NVLink have none: the
// two systems known contradict each other. docs/latency.md has the tables and the errors, also of systems
// left out of the fit; tests/latency fits again and compares.

#include <array>
#include <cstdint>

#include "sim/cost/topology.h"

namespace rollcall::cost {

// Measured over predicted time at three sizes; between them the factor follows the logarithm of the
// size, outside it stays.
struct Residuals {
  static constexpr std::array<std::int64_t, 3> sizes{std::int64_t{1} << 12, std::int64_t{1} << 20,
                                                     std::int64_t{1} << 28};

  std::array<double, 3> factors{1, 1, 1};

  double at(std::int64_t bytes) const;
};

// NCCL's own collectives on such GPUs.
const Residuals& residuals_of(int compute_capability, bool has_nvlink);

}  // namespace rollcall::cost
