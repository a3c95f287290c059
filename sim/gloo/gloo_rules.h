#pragma once

// Gloo's rules (backend_rules.h), as measured on the releases of TorchTraits and read in Gloo's sources.

#include <memory>

#include "sim/match/backend_rules.h"

namespace rollcall::sim {

std::unique_ptr<BackendRules> make_gloo_rules(const TorchTraits& torch);

}  // namespace rollcall::sim
