#pragma once

// RunState: the state that the ranks of one run share, besides the scenario.

#include <cstdint>

#include "scenarios/run/contributions.h"
#include "scenarios/run/watched_tensors.h"
#include "sim/engine/decisions.h"

namespace rollcall::scenario {

struct RunState {
  sim::Decisions* decisions = nullptr;  // borrowed; null: the usual way is taken everywhere
  Contributions contributions{};
  std::uint64_t seed = 0;  // for what statements leave to chance
  WatchedTensors watched{};
};

}  // namespace rollcall::scenario
