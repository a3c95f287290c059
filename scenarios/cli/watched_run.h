#pragma once

// A scenario that is about to be run, with somebody looking on: how far it is, and that it stays within memory.

#include <string>

#include "scenarios/format/scenario.h"

namespace rollcall::cli {

class Progress;

// Lets `progress` say how far runs of the scenario are, and ends them as limit_reached when they take nearly all the
// memory that is left now, or what the scenario allows. Both are borrowed. Throws UsageError where its ranks alone need
// more than there is.
void watch(scenario::Scenario& loaded, Progress& progress);

// Reads a scenario file, and watches it. Throws InvalidScenario as well.
scenario::Scenario load_watched(const std::string& address, Progress& progress,
                                const scenario::Overrides& overrides = {});

}  // namespace rollcall::cli
