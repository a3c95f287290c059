#pragma once

// The equations of ncclTopoTuneModel (NCCL 2.28.9, src/graph/tuning.cc): latency and bandwidth of one
// function, algorithm and protocol on one communicator, whatever the size.

#include "sim/cost/tuner.h"

namespace rollcall::cost {

// `is_asked_for`: the user has set NCCL_PROTO to this protocol, so NCCL uses LL128 even where it would not choose it on
// its own.
Tuner::Entry model_entry(const Communicator& communicator, Function function, Algorithm algorithm,
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
