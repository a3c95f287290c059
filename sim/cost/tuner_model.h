#pragma once

// The equations of ncclTopoTuneModel (NCCL 2.28.9, src/graph/tuning.cc): latency and bandwidth of one
// function, algorithm and protocol on one communicator, whatever the size.

#include <string_view>

#include "sim/cost/tuner.h"

namespace rollcall::cost {

struct ModeledPair {
  double latency = 0;        // microseconds
  double bandwidth = 0;      // algorithm bandwidth, GB/s; 0: not available
  std::string_view missing;  // why it is not available; empty: it is
};

// `is_asked_for`: the user has set NCCL_PROTO to this protocol, so NCCL uses LL128 even where it would not choose it on
// its own.
ModeledPair model_pair(const Communicator& communicator, Function function, Algorithm algorithm,
                       Protocol protocol, bool is_asked_for = false);

// The index of an enumerator in the tables.
template <typename Enum>
constexpr std::size_t index(Enum value) {
  return static_cast<std::size_t>(value);
}

// A ring passes every byte over every port, there and back for all_reduce.
constexpr double ring_steps(Function function, int ranks) {
  const bool is_rooted = function == Function::broadcast || function == Function::reduce;
  return is_rooted ? ranks : (function == Function::all_reduce ? 2.0 : 1.0) * (ranks - 1);
}

inline bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
}

}  // namespace rollcall::cost
