#pragma once

// NCCL's rules (backend_rules.h): they follow from its kernels, which exchange data by step number and
// do not compare calls.

#include <memory>

#include "sim/match/backend_rules.h"

namespace rollcall::sim {

std::unique_ptr<BackendRules> make_nccl_rules(const TorchTraits& torch);

}  // namespace rollcall::sim
