#pragma once

// Runs a scenario with progress and within the memory of the machine.

#include <string>

#include "scenarios/format/scenario.h"

namespace rollcall::cli {

class Progress;

// Lets `progress` show how far runs of the scenario are, and ends them with limit_reached if they take nearly all the
// memory that is left now, or the scenario's limit. Both are borrowed. Throws UsageError if its ranks alone need
// more memory than there is.
void watch(scenario::Scenario& loaded, Progress& progress);

// Reads a scenario file, and calls watch(). Throws InvalidScenario as well.
scenario::Scenario load_watched(const std::string& address, Progress& progress,
                                const scenario::Overrides& overrides = {});

}  // namespace rollcall::cli
