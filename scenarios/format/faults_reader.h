#pragma once

// A scenario's "faults": slow ranks, jitter, and ranks that die. The value has passed the schema.

#include "scenarios/json/json_tree.h"
#include "sim/engine/simulate.h"

namespace rollcall::scenario {

class Diagnostics;

// Fills in `options`; errors are in `diagnostics`.
void read_faults(const Json& faults, sim::Options& options, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
