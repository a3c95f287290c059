#pragma once

// TORCH_DISTRIBUTED_DEBUG=DETAIL: PyTorch's ProcessGroupWrapper compares collectives between ranks
// before running them (torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp). Operation, shape and dtype
// are compared; reduce op, root, values and point-to-point are not.

#include <optional>
#include <string>
#include <vector>

#include "sim/match/matcher.h"

namespace rollcall::sim {

// The error every member raises, by group rank, when the calls of a full slot have different fingerprints; empty when
// they agree in what DETAIL compares.
std::vector<std::string> detail_mismatch(const check::GroupMatcher& matcher, const check::Slot& slot,
                                         const TorchTraits& torch);

}  // namespace rollcall::sim
