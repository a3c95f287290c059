#pragma once

// Gloo's rules (backend_rules.h), as measured on PyTorch 1.13 and read in Gloo's sources.

#include <memory>

#include "sim/match/backend_rules.h"

namespace rollcall::sim {

std::unique_ptr<BackendRules> make_gloo_rules();

}  // namespace rollcall::sim
