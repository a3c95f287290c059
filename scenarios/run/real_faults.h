#pragma once

// Applies a scenario's "faults" to real ranks. Slow ranks compute as long as simulated ones. For ranks that die, a
// scenario gives the time; the simulator knows what they do then: each rank's calls into its backend are counted in a
// simulation first, and its real process ends at the same call, however fast it gets there.

#include <functional>
#include <memory>

#include "scenarios/format/scenario.h"
#include "sim/c10d/backend.h"

namespace rollcall::scenario {

// Returns the decorator of a real rank's backend (real::Options::decorate); null without faults. Simulates the scenario
// if ranks are to die. `scenario` is borrowed; `time_scale` is in real seconds per simulated second.
std::function<std::unique_ptr<Backend>(Backend&, Rank)> real_faults(const Scenario& scenario,
                                                                    double time_scale);

}  // namespace rollcall::scenario
